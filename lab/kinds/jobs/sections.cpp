#include "lab/kinds/jobs/sections.hpp"

#include <algorithm>
#include <cmath>

namespace vramlab {
namespace {

std::int64_t milli(double share) { return std::llround(share * 1000); }

// Above 1: work that would keep several cards busy.
template <class Section>
Member<Section> busy(std::int32_t Section::*member) {
  return converted(
      member, [](double share) { return static_cast<std::int32_t>(milli(share)); },
      [](std::int32_t thousandths) { return thousandths / 1000.0; });
}

template <class Section>
Member<Section> share(std::int64_t Section::*member) {
  return converted(
      member, [](double part) { return std::max<std::int64_t>(1, milli(part)); },
      [](std::int64_t thousandths) { return static_cast<double>(thousandths) / 1000; });
}

// The rows of what a job declares beside its need.
template <class Section>
Member<Section> in_demand(Member<JobDemand> member) {
  return within(&Section::demand, std::move(member));
}

const Record<PoolSection>& pool_table() {
  using P = PoolSection;
  static const Record<P> table{
      {"gpu", &P::gpu, "", 0, 0, "a card of `vramlab gpus` (or give `total`)"},
      {"total", &P::total, "", 0, kLargestCard, "each card's memory, where `gpu` names none"},
      {"count", &P::count, "", 1, 100000, "how many"},
      {"per_node", &P::per_node, "", 1, 1024,
       "cards of one machine (default: all of them); a job's cards are of one"},
      {"reserve", &P::reserve, "", 0, kLargestCard,
       "what the driver keeps of each card; contexts count with the jobs"},
      {"context", &P::context, "", 0, kLargestCard,
       "of one process, fidelity `steps` (default: the card's, else 527 MiB, assumed)"},
  };
  return table;
}

const Record<Stranger>& stranger_table() {
  using S = Stranger;
  static const Record<S> table{
      {"card", &S::card, "", 0, 1e6, "number of the card, from 0", kRequired},
      {"from_s", &S::from, "", 0, kLongestTime, "when it takes the memory, in seconds"},
      {"to_s", &S::to, "", 0, kLongestTime, "when it gives it back (default: never)"},
      {"bytes", &S::bytes, "", 0, kLargestCard, "how much; what is not free it gets later", kRequired},
      {"busy", busy(&S::busy_milli), "", 0, 16, "share of the card's time it takes, fidelity `steps`"},
  };
  return table;
}

const Record<QuotaSection>& quota_table() {
  using Q = QuotaSection;
  static const Record<Q> table{
      {"name", &Q::name, "", 0, 0, "what jobs call it", kRequired},
      {"bytes", &Q::bytes, "", 0, kLargestCard, "over all cards at once", kRequired},
  };
  return table;
}

const Record<JobEstimate>& estimate_table() {
  using E = JobEstimate;
  static const Record<E> table{
      {"type", as(FieldKind::choice, &E::type, estimate_types()), "", 0, 0, "row of the table", kRequired},
      {"size", as(FieldKind::choice, &E::size, {"small", "medium", "large", "xlarge"}), "", 0, 0, "its size"},
      {"sequence", &E::sequence, "", 1, 1e7, "tokens, for transformers"},
      {"training", &E::training, "", 0, 0, "gradients and optimizer state too"},
  };
  return table;
}

const Record<SpanSection>& span_table() {
  using S = SpanSection;
  static const Record<S> table{
      {"duration_s", &S::duration, "", 0, kLongestTime, "how long it lasts, alone on a card"},
      {"steps", &S::steps, "", 1, 1e9, "in place of it where the job has a model"},
      {"set", &S::set, "", 0, 0, "parameters of its steps (default: those of `at`)"},
      {"use", &S::use, "", 0, kLargestCard, "memory really used on each card (default: what is promised)"},
      {"use_per_sample", &S::use_per_sample, "", 0, kLargestCard,
       "and for each sample of the batch it runs at"},
      {"need", &S::need, "", 0, kLargestCard,
       "memory asked for where a policy admits by phase (default: the job's)"},
  };
  return table;
}

const Record<VariantSection>& variant_table() {
  using V = VariantSection;
  const auto of_whole = [](Member<SpanSection> member) { return within(&V::whole, std::move(member)); };
  static const Record<V> table{
      {"name", &V::name, "", 0, 0, "what it is called", kRequired},
      {"model", raw(FieldKind::model, &V::model_json), "", 0, 0, "what it runs (default: the job's)"},
      {"at", &V::at, "", 0, 0, "parameters of the model but its batch (default: the job's)"},
      {"need", &V::need, "", 0, kLargestCard,
       "declared memory on each card, batch aside; with a model what that takes, if left out"},
      {"per_sample", &V::per_sample, "", 0, kLargestCard, "declared memory for each sample of the batch"},
      {"use", of_whole(&SpanSection::use), "", 0, kLargestCard,
       "memory really used on each card, batch aside (default: what is promised)"},
      {"use_per_sample", of_whole(&SpanSection::use_per_sample), "", 0, kLargestCard,
       "and for each sample of the batch it runs at"},
      {"duration_s", of_whole(&SpanSection::duration), "", 0, kLongestTime,
       "how long it runs (default: as long as the job)"},
  };
  return table;
}

}  // namespace

const Record<JobTunerSection>& job_tuner_table() {
  using T = JobTunerSection;
  static const Record<T> table{{{"use", &T::use, "", 0, 0, "a tuner of `vramlab policies`", kRequired},
                                {"profile", &T::profile, "", 0, 0, "a named set of its options"},
                                {"bounds", &T::bounds, "", 0, 0, kBoundsHelp}},
                               raw(FieldKind::object, &PolicySection::json)};
  return table;
}

namespace {

const Record<PolicySection>& job_composer_table() {
  using P = PolicySection;
  static const Record<P> table{{{"use", &P::use, "", 0, 0, "a composer of `vramlab policies`", kRequired},
                                {"profile", &P::profile, "", 0, 0, "a named set of its options"}},
                               raw(FieldKind::object, &P::json)};
  return table;
}

const Record<JobEpochSection>& job_epoch_table() {
  using E = JobEpochSection;
  static const Record<E> table{std::vector<Row<E>>{}, raw(FieldKind::object, &E::json)};
  return table;
}

const Record<JobSection>& job_table() {
  using J = JobSection;
  const auto of_whole = [](Member<SpanSection> member) { return within(&J::whole, std::move(member)); };
  static const Record<J> table{
      {"name", &J::name, "", 0, 0, "what it is called"},
      {"count", &J::count, "", 1, 1e6, "this many jobs of this make"},
      {"arrival_s", &J::arrival, "", 0, kLongestTime, "when it is submitted"},
      {"every_s", &J::every, "", 0, kLongestTime, "time between the arrivals of `count` jobs"},
      {"model", raw(FieldKind::model, &J::model_json), "", 0, 0,
       "what it runs: a model file, or a model in place; without a need it declares what that takes"},
      {"at", &J::at, "", 0, 0, "parameters of the model but its batch"},
      {"steps", of_whole(&SpanSection::steps), "", 1, 1e9, "how many steps of the model (or give `phases`)"},
      {"busy", busy(&JobSpec::busy_milli), "", 0, 16,
       "share of a card's time that its steps take, fidelity `steps`"},
      {"need", &J::need, "", 0, kLargestCard, "declared memory on each card, batch aside"},
      {"per_sample", in_demand<J>(&JobDemand::per_sample), "", 0, kLargestCard,
       "declared memory for each sample of the batch"},
      {"share", in_demand<J>(share(&JobDemand::share_milli)), "", 0.001, 1,
       "instead of bytes: share of whichever card"},
      {"estimate", object_of(&J::estimate, estimate_table()), "", 0, 0,
       "instead of bytes: the table estimate"},
      {"batch", in_demand<J>(&JobDemand::batch), "", 1, 1e6, "samples at once"},
      {"use", of_whole(&SpanSection::use), "", 0, kLargestCard,
       "memory really used on each card, batch aside (default: what is promised)"},
      {"use_per_sample", of_whole(&SpanSection::use_per_sample), "", 0, kLargestCard,
       "and for each sample of the batch it runs at"},
      {"cards", in_demand<J>(&JobDemand::cards), "", 1, 1024, "cards of one node"},
      {"priority", in_demand<J>(&JobDemand::priority), "", -1000, 1000, "higher goes first"},
      {"quota", &J::quota, "", 0, 0, "name of the quota it counts against"},
      {"duration_s", of_whole(&SpanSection::duration), "", 0, kLongestTime,
       "how long it runs (or give `phases`)"},
      {"expected_s", &J::expected, "", 0, kLongestTime,
       "how long it says it runs (default: as long as it does)"},
      {"crash_after_s", &J::crash_after, "", 0, kLongestTime,
       "running time after which its owner dies and tells nobody"},
      {"phases", list_of(&J::spans, span_table()), "", 0, 0, "stretches with memory of their own"},
      {"variants", list_of(&J::ways, variant_table()), "", 0, 0,
       "other ways to run it, tried in this order where a queue may degrade it"},
      {"tuner", object_of(&J::tuner_section, job_tuner_table()), "", 0, 0,
       "moves the parameters of its model from step to step, from `batch` and `at` on; fidelity `steps`; "
       "further keys are options of the policy"},
      {"composer", object_of(&J::composer_section, job_composer_table()), "", 0, 0,
       "puts the batches of its `epoch` together; fidelity `steps`; further keys are options of the policy"},
      {"epoch", object_of(&J::epoch, job_epoch_table()), "", 0, 0,
       "with `composer`: model, data, epochs and target_batch, as in `workload` of kind epoch; the job ends "
       "when its epochs are done, and `duration_s` is what they take alone"},
  };
  return table;
}

const Record<MixSection>& mix_table() {
  using M = MixSection;
  static const Record<M> table{
      {"name", &M::name, "", 0, 0, "what this sort of job is called", kRequired},
      {"weight", &M::weight, "", 1, 1e6, "how often, compared with the others"},
      {"need_low", &M::low, "", 0, kLargestCard, "smallest need on each card (or give `model`)"},
      {"need_high", &M::high, "", 0, kLargestCard, "largest need"},
      {"model", raw(FieldKind::model, &M::model_json), "", 0, 0,
       "what jobs of this sort run, for as many steps as fit"},
      {"at", &M::at, "", 0, 0, "parameters of the model but its batch"},
      {"busy", busy(&JobSort::busy_milli), "", 0, 16,
       "share of a card's time that they take, fidelity `steps`"},
      {"shortest_s", &M::shortest, "", 0, kLongestTime, "shortest duration", kRequired},
      {"longest_s", &M::longest, "", 0, kLongestTime, "longest duration; drawn evenly by octaves", kRequired},
      {"cards", in_demand<M>(&JobDemand::cards), "", 1, 1024, "cards of one node"},
      {"priority", in_demand<M>(&JobDemand::priority), "", -1000, 1000, "higher goes first"},
      {"batch", in_demand<M>(&JobDemand::batch), "", 1, 1e6,
       "samples at once: all but a fifth of the need is theirs"},
  };
  return table;
}

const Record<GenerateSection>& generate_table() {
  using G = GenerateSection;
  static const Record<G> table{
      {"jobs", &G::jobs, "", 1, 1e6, "how many", kRequired},
      {"hours", &G::hours, "", 0.001, 1e5, "they arrive within", kRequired},
      {"mix", list_of(&G::mix, mix_table()), "", 0, 0, "sorts of jobs", kRequired},
  };
  return table;
}

const Record<TraceSection>& trace_table() {
  using T = TraceSection;
  static const Record<T> table{
      {"jobs", &T::jobs, "", 0, 0, "a list of jobs, CSV or JSON (docs/job-queue.md)"},
      {"pods", &T::pods, "", 0, 0, "an openb list of pods; `nodes` goes with it"},
      {"nodes", &T::nodes, "", 0, 0, "an openb list of nodes, in place of `cards`"},
      {"anonymous_card", within(&T::openb, &OpenbOptions::anonymous_card), "", 0, kLargestCard,
       "memory of the cards G2 and G3, which the list does not say"},
      {"gavel", &T::gavel, "", 0, 0, "a trace of Gavel; `throughputs` goes with it"},
      {"throughputs", &T::throughputs, "", 0, 0, "Gavel's measured steps per second"},
      {"gpu", within(&T::gavel_options, &GavelOptions::gpu), "", 0, 0, "on which of its kinds of cards"},
      {"share", within(&T::gavel_options, share(&GavelOptions::share_milli)), "", 0.001, 1,
       "of each card that a job of Gavel takes, which its trace does not say"},
  };
  return table;
}

std::vector<Row<JobsFile>> own_rows() {
  using F = JobsFile;
  return {
      {"cards", list_of(&F::pools, pool_table()), "", 0, 0, "the cards to share"},
      {"strangers", within(&F::setup, list_of(&JobQueueSetup::strangers, stranger_table())), "", 0, 0,
       "processes on them that the queue does not know"},
      {"start_up_s", within(&F::setup, &JobQueueSetup::start_up), "", 0, kLongestTime,
       "from a job's admission until it takes its memory"},
      {"quotas", list_of(&F::quotas, quota_table()), "", 0, 0, "limits on the sum of promises"},
      {"jobs", list_of(&F::jobs, job_table()), "", 0, 0, "the jobs, one by one"},
      {"generate", object_of(&F::generate, generate_table()), "", 0, 0, "further jobs, drawn with the seed"},
      {"trace", object_of(&F::trace, trace_table()), "", 0, 0, "further jobs, from a file"},
      {"estimate_error", &F::estimate_error, "", 0, 0.999,
       "real use is the need times 1 ± this, drawn for each job; with a model, the need is the real use "
       "times that"},
  };
}

}  // namespace

const Record<JobsFile>& jobs_file_table() {
  using F = JobsFile;
  static const Record<F> table{joined<F>(
      head_rows("jobs"), seed_rows(),
      std::vector<Row<F>>{
          {"seeds", &F::seeds, "", 1, 1000, "`check` runs this many seeds, from `seed` on"},
          {"fidelity", one_of<&F::simulates_steps>({"declared", "steps"}), "", 0, 0,
           "declared: jobs are needs and durations; steps: each has an allocator of its own"},
          {"objective", one_of<&JobsScenario::objective>(queue_objective_names()), "", 0, 0,
           "of jobs with a tuner or a composer: what the best fixed choice is searched by, hundreds "
           "of runs"}},
      allocator_rows(), own_rows(), plugins_rows(), policies_rows(kPoliciesHelp, kRequired),
      expectations_rows(seeded_expectation_table()), sweep_rows())};
  return table;
}

const Record<JobListFile>& job_list_table() {
  static const Record<JobListFile> table{
      {"jobs", list_of(&JobListFile::jobs, job_table()), "", 0, 0, "the jobs", kRequired}};
  return table;
}

}  // namespace vramlab
