#include "plan/planner.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "plan/capacity_search.hpp"
#include "plan/orders.hpp"
#include "plan/skyline.hpp"
#include "plan/validator.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kFirstPasses = 4;      // whatever work is allowed
constexpr std::size_t kMostPasses = 200;     // few buffers are the search's
constexpr std::size_t kMostSearched = 2000;  // buffers; a node of the search looks at all of them
constexpr std::size_t kRunNodes = 400;       // short runs in ever new orders find more than one long one
constexpr std::size_t kRunsForCapacity = 4000;

// Some seconds. Where a capacity is to be met there is nothing else to be done.
std::size_t runs_for_least(std::size_t buffers) { return 400'000 / std::max<std::size_t>(buffers, 100); }

/// What is known of buffers that are planned together.
class Part {
 public:
  explicit Part(std::vector<Buffer> buffers)
      : buffers_(std::move(buffers)),
        timeline_(timeline_of(buffers_)),
        orders_(buffers_, timeline_),
        bound_(timeline_.peak) {
    for (const Buffer& buffer : buffers_) unit_ = std::gcd(unit_, buffer.size);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  [[nodiscard]] const std::vector<Bytes>& offsets() const { return best_; }
  [[nodiscard]] Bytes planned() const { return planned_; }
  [[nodiscard]] Bytes bound() const { return bound_; }
  [[nodiscard]] std::size_t passes() const { return passes_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_; }

  /// Until the plan needs at most `goal`, or `work` is spent and the first passes are done.
  void pack(Bytes goal, std::size_t work);
  /// The same by search, in at most `runs` runs; where the goal is out of reach, as near as may be. `strict`:
  /// nothing but the goal counts.
  void search(Bytes goal, std::size_t runs, bool strict);

 private:
  CapacitySearch::Answer try_capacity(CapacitySearch& search, Bytes capacity, std::size_t runs);
  void keep(const std::vector<Bytes>& offsets);
  OrderWeights any_weights();

  std::vector<Buffer> buffers_;
  Timeline timeline_;
  Orders orders_;
  Random random_{1};
  Bytes unit_ = 0;  ///< every plan without gaps at its bottom needs a multiple of it
  Bytes bound_;
  Bytes planned_ = kMostBufferBytes + 1;
  std::vector<Bytes> best_;
  std::size_t passes_ = 0;
  std::size_t nodes_ = 0;
};

// Which weights do best differs from program to program; these are good at most of them.
OrderWeights first_weights(std::size_t pass) {
  constexpr std::array<OrderWeights, kFirstPasses> kFirst{
      {{.size = 16, .life = 16}, {.life = 16}, {.size = 16}, {.size = 16, .life = 8, .load = 128}}};
  return kFirst[pass];
}

OrderWeights Part::any_weights() {
  OrderWeights weights{.size = random_.between(0, 24), .life = random_.between(0, 24)};
  if (random_.between(0, 2) > 0) weights.load = random_.between(0, 16) * random_.between(0, 24);
  if (random_.between(0, 1) > 0) weights.noise = random_.between(0, 4) * random_.between(0, 4);
  if (random_.between(0, 2) > 0) weights.trouble = random_.between(0, 32);
  return weights;
}

void Part::keep(const std::vector<Bytes>& offsets) {
  best_ = offsets;
  planned_ = 0;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    planned_ = std::max(planned_, buffers_[i].size == 0 ? 0 : best_[i] + buffers_[i].size);
  }
}

void Part::pack(Bytes goal, std::size_t work) {
  Skyline skyline(buffers_, timeline_);
  std::vector<Bytes> offsets;
  for (std::size_t done = 0; planned_ > goal; ++passes_) {
    const bool first = passes_ < kFirstPasses;
    if (!first && (done >= work || passes_ >= kMostPasses)) return;
    const OrderWeights weights = first ? first_weights(passes_) : any_weights();
    const SkylinePass pass = skyline.pack(orders_.order(weights, random_), planned_, offsets);
    if (pass.trouble) {
      orders_.add_trouble(*pass.trouble);
    } else {
      keep(offsets);
    }
    if (!first) done += buffers_.size() + pass.placed;
  }
}

// What stood in the way in earlier runs comes sooner in two of three: in all of its life, or by its length.
CapacitySearch::Answer Part::try_capacity(CapacitySearch& search, Bytes capacity, std::size_t runs) {
  for (std::size_t run = 0; run < runs; ++run) {
    OrderWeights weights{.size = random_.between(0, 24),
                         .life = random_.between(0, 24),
                         .noise = random_.between(0, 4) * random_.between(0, 4)};
    if (run % 3 > 0) weights.trouble = random_.between(0, 24);
    weights.on_average = run % 3 == 1;
    const CapacitySearch::Answer answer = search.run(capacity, orders_.scores(weights, random_), kRunNodes);
    nodes_ += search.nodes();
    for (const std::size_t piece : search.dead_ends()) orders_.add_trouble(piece);
    if (answer == CapacitySearch::Answer::fits) keep(search.offsets());
    if (answer != CapacitySearch::Answer::open) return answer;
  }
  return CapacitySearch::Answer::open;
}

void Part::search(Bytes goal, std::size_t runs, bool strict) {
  if (planned_ <= goal || buffers_.size() > kMostSearched) return;
  CapacitySearch search(buffers_, timeline_);
  const auto fits = [&](Bytes capacity, std::size_t most_runs) {
    const CapacitySearch::Answer answer = try_capacity(search, capacity, most_runs);
    if (answer == CapacitySearch::Answer::does_not_fit) {
      bound_ = std::max(bound_, (capacity / unit_ + 1) * unit_);
    }
    return answer == CapacitySearch::Answer::fits;
  };
  if (fits(goal, runs) || strict) return;
  Bytes low = goal;  // ruled out, or given up
  while (planned_ - low > unit_) {
    const Bytes middle = low + std::max<Bytes>(1, (planned_ - low) / unit_ / 2) * unit_;
    if (!fits(middle, runs / 8 + 1)) low = middle;
  }
}

/// Which buffers belong together, in order of time: within a group, at every moment one lives on.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<Buffer>& buffers) {
  std::vector<std::size_t> sorted(buffers.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::size_t a, std::size_t b) { return buffers[a].lower < buffers[b].lower; });
  std::vector<std::vector<std::size_t>> groups;
  std::int64_t until = 0;
  for (const std::size_t buffer : sorted) {
    if (groups.empty() || buffers[buffer].lower >= until) {
      groups.emplace_back();
      until = buffers[buffer].upper;
    }
    groups.back().push_back(buffer);
    until = std::max(until, buffers[buffer].upper);
  }
  return groups;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Buffer>& buffers, const PlanQuestion& question) {
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  plan.load = timeline_of(buffers).peak;
  plan.bound = plan.load;
  const bool strict = question.capacity && *question.capacity >= plan.load;
  const Bytes goal = strict ? *question.capacity : plan.load;
  for (const std::vector<std::size_t>& group : groups_of(buffers)) {
    std::vector<Buffer> together;
    for (const std::size_t buffer : group) together.push_back(buffers[buffer]);
    Part part(std::move(together));
    // Where another group needs more anyway, this much will do.
    const Bytes enough = std::max(goal, plan.planned);
    part.pack(enough, question.work / buffers.size() * group.size());
    if (question.work > 0)
      part.search(enough, strict ? kRunsForCapacity : runs_for_least(group.size()), strict);
    for (std::size_t i = 0; i < group.size(); ++i) plan.offsets[group[i]] = part.offsets()[i];
    plan.planned = std::max(plan.planned, part.planned());
    plan.bound = std::max(plan.bound, part.bound());
    plan.passes += part.passes();
    plan.nodes += part.nodes();
  }
  const PlanCheck check = check_plan(buffers, plan.offsets);
  if (!check.sound()) throw InternalError("a plan does not stand its check: " + check.faults.front());
  if (check.top != plan.planned || check.load != plan.load) {
    throw InternalError("a plan needs other bytes than it says");
  }
  return plan;
}

}  // namespace vramlab
