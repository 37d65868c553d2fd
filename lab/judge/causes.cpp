#include "lab/judge/causes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "lab/judge/atoms.hpp"
#include "lab/judge/leaks.hpp"
#include "lab/metric.hpp"
#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {
namespace {

using Act = ClientAction::Kind;
using Type = Atom::Type;
using Test = std::function<bool(const Atom&)>;
constexpr double kMost = 0.6;          // of the activations' bytes have one ratio
constexpr std::size_t kMostLeaks = 4;  // that are told apart
constexpr std::size_t kMostOthers = 8;

bool is_of_precision(double ratio) { return ratio == 2 || ratio == 0.5 || ratio == 4 || ratio == 0.25; }

std::string times_text(double ratio) { return fmt::format("{:.4g} times", ratio); }

std::string category_name(Category category) {
  return std::string{kCategoryNames[static_cast<std::size_t>(category)]};
}

class Sorter {
 public:
  Sorter(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment, std::size_t first)
      : a_(a), b_(b), alignment_(alignment), atoms_(atoms_of(a, b, alignment, first)) {}

  FoundCauses sort() {
    if (!atoms_.all.empty()) {
      find_calls();
      find_streams();
      find_leaks();
      const WeightChange weights = weight_change(a_, b_);
      find_model(weights);
      find_optimizer();
      find_passes();
      find_recomputation();
      find_input();
      find_workspaces();
      find_late_frees();
      find_others();
    }
    found_.moved_frees = atoms_.moved_frees;
    record();
    return std::move(found_);
  }

 private:
  /// Makes one cause of the open atoms that pass; null if none does. `shown`: those that say where.
  FoundCause* take(BlameKind kind, const Test& test, const Test& shown = {}) {
    std::vector<const Atom*> taken;
    const auto id = static_cast<CauseId>(found_.causes.size() + 1);
    for (Atom& atom : atoms_.all) {
      if (!atom.open || !test(atom)) continue;
      atom.open = false;
      atom.cause = id;
      taken.push_back(&atom);
    }
    if (taken.empty()) return nullptr;
    FoundCause cause{.kind = kind, .first_step = taken.front()->stretch};
    for (const Atom* atom : taken) cause.first_step = std::min(cause.first_step, atom->stretch);
    cause.sites = sites_of(taken);
    std::vector<const Atom*> places = only(taken, [&](const Atom& atom) { return !shown || shown(atom); });
    places = only(places, [](const Atom& atom) { return !atom.alloc || atom.site != 0; });
    cause.where = where_of(places);
    found_.causes.push_back(std::move(cause));
    return &found_.causes.back();
  }

  /// Those that pass; all where none does.
  static std::vector<const Atom*> only(const std::vector<const Atom*>& atoms, const Test& test) {
    std::vector<const Atom*> passing;
    std::ranges::copy_if(atoms, std::back_inserter(passing), [&](const Atom* atom) { return test(*atom); });
    return passing.empty() ? atoms : passing;
  }

  [[nodiscard]] std::string name_of_place(const Atom& atom) const {
    if (!atom.alloc) {
      const ClientAction& action =
          atom.type == Type::only_a ? a_.program.actions[atom.a] : b_.program.actions[atom.b];
      return name_of(action.kind);
    }
    if (atom.site != 0) return alignment_.sites[atom.site];
    const bool grown = atom.type == Type::life && atom.category_a == Category::gradients;
    return category_name(grown ? atom.category_a : atom.category()) + ", no stack recorded";
  }

  [[nodiscard]] std::vector<SiteChange> sites_of(const std::vector<const Atom*>& atoms) const {
    std::map<std::string, SiteChange> by_name;
    for (const Atom* atom : atoms) {
      SiteChange& site = by_name[name_of_place(*atom)];
      site.bytes += atom->change();
      ++site.blocks;
    }
    std::vector<SiteChange> sites;
    for (auto& [name, site] : by_name) {
      site.where = name;
      sites.push_back(site);
    }
    std::ranges::stable_sort(sites, std::ranges::greater{},
                             [](const SiteChange& site) { return std::abs(site.bytes); });
    return sites;
  }

  [[nodiscard]] std::vector<std::string> frames_of(const Atom& atom) const {
    const ReadProgram& read = atom.type == Type::only_a ? a_ : b_;
    const StackId stack = read.program.actions[atom.type == Type::only_a ? atom.a : atom.b].detail;
    if (!atom.alloc || stack >= read.program.stacks.size() || read.program.stacks[stack].empty()) return {};
    return shown_frames(read.program.frames, read.program.stacks[stack]);
  }

  // One line with most of it, else the innermost that all with a stack were called from.
  [[nodiscard]] std::string where_of(const std::vector<const Atom*>& atoms) const {
    const std::vector<SiteChange> sites = sites_of(atoms);
    std::int64_t all = 0;
    for (const SiteChange& site : sites) all += std::abs(site.bytes);
    if (sites.size() < 3 || 2 * std::abs(sites.front().bytes) >= all) return sites.front().where;
    std::optional<std::vector<std::string>> common;  // outermost first
    for (const Atom* atom : atoms) {
      std::vector<std::string> frames = frames_of(*atom);
      if (frames.empty()) continue;
      std::ranges::reverse(frames);
      if (!common) {
        common = frames;
      } else {
        const auto differ = std::ranges::mismatch(*common, frames).in1;
        common->erase(differ, common->end());
      }
    }
    if (common && !common->empty()) return common->back();
    return sites.front().where;
  }

  // --- The causes, the most particular first ---

  void find_calls() {
    for (const Act kind : {Act::empty_cache, Act::attempt, Act::sync, Act::reset_peak, Act::settings,
                           Act::pool_new, Act::pool_del, Act::capture_begin, Act::capture_end}) {
      std::size_t only_a = 0;
      std::size_t only_b = 0;
      FoundCause* cause = take(BlameKind::other, [&](const Atom& atom) {
        if (atom.alloc) return false;
        const bool of_a = atom.type == Type::only_a;
        const Act other = of_a ? a_.program.actions[atom.a].kind : b_.program.actions[atom.b].kind;
        if (other != kind) return false;
        ++(of_a ? only_a : only_b);
        return true;
      });
      if (cause == nullptr) continue;
      if (kind == Act::empty_cache) cause->where = "torch.cuda.empty_cache()";
      if (kind == Act::attempt) cause->where = "requests that failed";
      cause->what = fmt::format("{} only in the new program, {} only in the golden one", only_b, only_a);
    }
  }

  [[nodiscard]] static std::set<std::uint32_t> streams_of(const ReadProgram& read,
                                                          const std::vector<std::uint32_t>& numbers) {
    std::set<std::uint32_t> streams;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (read.program.actions[i].kind == Act::alloc) streams.insert(numbers[i]);
    }
    return streams;
  }

  void find_streams() {
    const auto numbers_a = stream_numbers(a_.program);
    const auto numbers_b = stream_numbers(b_.program);
    const auto in_a = streams_of(a_, numbers_a);
    const auto in_b = streams_of(b_, numbers_b);
    using Like = std::pair<SiteId, Bytes>;
    std::map<Like, std::set<std::uint32_t>> only_a;
    std::map<Like, std::set<std::uint32_t>> only_b;
    for (const Atom& atom : atoms_.all) {
      if (!atom.alloc) continue;
      if (atom.type == Type::only_a) only_a[{atom.site, atom.bytes_a}].insert(numbers_a[atom.a]);
      if (atom.type == Type::only_b) only_b[{atom.site, atom.bytes_b}].insert(numbers_b[atom.b]);
    }
    const auto moved = [](const auto& here, const auto& there, const Like& like, std::uint32_t stream) {
      const auto other = there.find(like);
      return here.contains(like) && other != there.end() && !other->second.contains(stream);
    };
    FoundCause* cause = take(BlameKind::stream, [&](const Atom& atom) {
      if (!atom.alloc || !atom.is_only()) return false;
      const bool of_a = atom.type == Type::only_a;
      const Like like{atom.site, of_a ? atom.bytes_a : atom.bytes_b};
      const std::uint32_t stream = of_a ? numbers_a[atom.a] : numbers_b[atom.b];
      if (!(of_a ? in_b : in_a).contains(stream)) return true;
      return of_a ? moved(only_a, only_b, like, stream) : moved(only_b, only_a, like, stream);
    });
    if (cause == nullptr) return;
    cause->what = fmt::format("allocations on {} stream{} in the new program, on {} in the golden one",
                              in_b.size(), in_b.size() == 1 ? "" : "s", in_a.size());
  }

  // What both leave is not new.
  void find_leaks() {
    for (const bool in_b : {true, false}) {
      const ReadProgram& read = in_b ? b_ : a_;
      std::vector<StepLeak> leaks = leaks_of(read);
      std::set<ProgramBlock> blocks;
      const auto is_leaks = [&](const Atom& atom) {
        const std::uint32_t at = in_b ? atom.b : atom.a;
        if (!atom.alloc || at == kUnpaired || atom.type == (in_b ? Type::only_a : Type::only_b)) return false;
        const bool left =
            in_b ? atom.never_b || atom.type == Type::only_b : atom.never_a || atom.type == Type::only_a;
        return left && atom.type != Type::size && blocks.contains(read.program.actions[at].block);
      };
      if (leaks.size() > kMostLeaks) {
        StepLeak& whole = leaks.front();
        for (std::size_t i = 1; i < leaks.size(); ++i) {
          whole.blocks.insert(whole.blocks.end(), leaks[i].blocks.begin(), leaks[i].blocks.end());
          whole.bytes += leaks[i].bytes;
          whole.per_step += leaks[i].per_step;
          whole.first_step = std::min(whole.first_step, leaks[i].first_step);
        }
        leaks.resize(1);
      }
      for (const StepLeak& leak : leaks) {
        blocks = {leak.blocks.begin(), leak.blocks.end()};
        FoundCause* cause = take(BlameKind::leak, is_leaks);
        if (cause == nullptr) continue;
        cause->per_step = leak.per_step;
        cause->what = fmt::format("{} {} in blocks that nothing frees ({} steps left some)",
                                  in_b ? "a step leaves" : "no step leaves any longer",
                                  format_bytes(leak.per_step), leak.steps);
      }
    }
  }

  // Everything else follows from another model.
  void find_model(const WeightChange& weights) {
    const auto all = [](const Atom&) { return true; };
    const auto saved = [](const Atom& atom) {
      return atom.stretch > 0 &&
             (atom.category_a == Category::activations || atom.category_b == Category::activations);
    };
    const std::string bytes =
        fmt::format("weights of {} are {}", format_bytes(weights.a), format_bytes(weights.b));
    if (weights.ratio != 1) {
      const bool precision = is_of_precision(weights.ratio);
      FoundCause* cause = take(precision ? BlameKind::dtype : BlameKind::other, all,
                               [](const Atom& atom) { return atom.category() == Category::weights; });
      if (cause != nullptr)
        cause->what = weights.count_a == weights.count_b
                          ? bytes
                          : "weights are " + times_text(weights.ratio) + " as large";
    } else if (weights.repeated) {
      FoundCause* cause = take(BlameKind::more_layers, all, saved);
      if (cause != nullptr) {
        cause->what = fmt::format("{} weights for {}{}", weights.count_b, weights.count_a, repeats_text());
      }
    } else if (weights.changed()) {
      FoundCause* cause =
          take(BlameKind::other, all, [](const Atom& atom) { return atom.category() == Category::weights; });
      if (cause != nullptr)
        cause->what =
            fmt::format("another model: {}{}", bytes,
                        weights.resized ? fmt::format(", {} of them in both", weights.count_a) : "");
    } else if (const double ratio = saved_ratio(); is_of_precision(ratio) && input_ratio() == 1) {
      FoundCause* cause = take(BlameKind::dtype, all, saved);
      if (cause != nullptr)
        cause->what = "what is saved for backward is " + times_text(ratio) + " as large, the input the same";
    }
  }

  /// How often each line comes in both, in one step.
  using SiteCounts = std::map<SiteId, std::pair<std::size_t, std::size_t>>;
  [[nodiscard]] SiteCounts counts_in(std::size_t step) const {
    SiteCounts counts;
    const auto count = [&](const ReadProgram& read, const std::vector<SiteId>& sites, auto member) {
      if (step > read.steps.count()) return;
      for (std::size_t i = read.steps.begin_of(step); i < read.steps.ends[step]; ++i) {
        if (read.program.actions[i].kind == Act::alloc && sites[i] != 0) ++(counts[sites[i]].*member);
      }
    };
    using Counts = std::pair<std::size_t, std::size_t>;
    count(a_, alignment_.site_a, &Counts::first);
    count(b_, alignment_.site_b, &Counts::second);
    return counts;
  }

  /// Of the line that comes least often in a step of the golden program, how often in both.
  [[nodiscard]] std::string repeats_text() const {
    const SiteCounts counts = counts_in(std::min({a_.steps.count(), b_.steps.count(), std::size_t{2}}));
    const std::pair<const SiteId, std::pair<std::size_t, std::size_t>>* least = nullptr;
    for (const auto& one : counts) {
      const auto& both = one.second;
      const bool differs = both.first != both.second && both.first > 0 && both.second > 0;
      if (differs && (least == nullptr || both.first < least->second.first)) least = &one;
    }
    if (least == nullptr) return "";
    return fmt::format("; {} repeats for {} of {}", least->second.second, least->second.first,
                       alignment_.sites[least->first]);
  }

  [[nodiscard]] double ratio_of(const std::function<bool(const BlockUse&)>& is, double share) const {
    Ratios ratios;
    for (std::size_t i = 0; i < alignment_.a_of.size(); ++i) {
      const std::uint32_t partner = alignment_.a_of[i];
      const ClientAction& action = b_.program.actions[i];
      if (partner == kUnpaired || action.kind != Act::alloc || b_.steps.stretch_of(i) == 0) continue;
      const ClientAction& other = a_.program.actions[partner];
      if (is(a_.uses.blocks[other.block])) ratios.add(other.bytes, action.bytes);
    }
    return ratios.of_most(share);
  }
  [[nodiscard]] double saved_ratio() const {
    return ratio_of([](const BlockUse& use) { return use.category == Category::activations; }, kMost);
  }
  [[nodiscard]] double input_ratio() const {
    return ratio_of([](const BlockUse& use) { return use.category == Category::inputs; }, kMost);
  }

  void find_optimizer() {
    FoundCause* cause = take(BlameKind::optimizer, [](const Atom& atom) { return atom.by_optimizer; });
    if (cause == nullptr) return;
    const std::string before = format_bytes(bytes_of(a_, Category::optimizer_state));
    const std::string now = format_bytes(bytes_of(b_, Category::optimizer_state));
    cause->what = before == now ? "its state is " + now + " as before: it is updated another way"
                                : "optimizer state of " + before + " is " + now;
  }

  // Blocks of one line that are freed in forward for once, and come once more in backward.
  void find_recomputation() {
    for (const bool gained : {true, false}) {
      const Type extra = gained ? Type::only_b : Type::only_a;
      const auto shorter = [&](const Atom& atom) {
        const Category before = gained ? atom.category_a : atom.category_b;
        return atom.type == Type::life && (gained ? atom.shift < 0 : atom.shift > 0) &&
               before == Category::activations;
      };
      std::set<Place> again;
      std::set<Place> places;
      for (const Atom& atom : atoms_.all) {
        if (atom.open && atom.alloc && atom.type == extra &&
            in_backward(gained ? b_ : a_, gained ? atom.b : atom.a))
          again.insert(place_of(atom));
      }
      Bytes shortened = 0;
      Bytes not_again = 0;
      for (const Atom& atom : atoms_.all) {
        if (!atom.open || !shorter(atom)) continue;
        const bool comes_again = again.contains(place_of(atom));
        if (comes_again) places.insert(place_of(atom));
        (comes_again ? shortened : not_again) += atom.bytes_b;
      }
      if (places.empty() || shortened < not_again) continue;
      const std::string repeats = recomputed_repeats(places, shorter);
      const auto belongs = [&](const Atom& atom) {
        return atom.stretch > 0 &&
               (atom.type == Type::life || atom.type == extra || places.contains(place_of(atom)));
      };
      FoundCause* cause = take(BlameKind::recomputation, belongs, shorter);
      if (cause == nullptr) continue;
      cause->what = fmt::format(
          "activations {} {}",
          gained ? "are now recomputed in backward:" : "are no longer recomputed in backward:", repeats);
      return;
    }
  }

  /// A line; of blocks without a stack the size.
  using Place = std::pair<SiteId, Bytes>;
  static Place place_of(const Atom& atom) {
    return {atom.site, atom.site == 0 ? std::max(atom.bytes_a, atom.bytes_b) : 0};
  }

  /// Which repeats of a line are affected: of that with the fewest blocks a step.
  [[nodiscard]] std::string recomputed_repeats(const std::set<Place>& places, const Test& shorter) const {
    const auto affected = [&](const Atom& atom) {
      return atom.open && shorter(atom) && places.contains(place_of(atom));
    };
    const std::size_t step = std::ranges::find_if(atoms_.all, affected)->stretch;
    std::map<SiteId, std::vector<std::uint32_t>> pairs;  // of that step, by action of B
    for (std::size_t i = b_.steps.begin_of(step); i < b_.steps.ends[step]; ++i) {
      const SiteId site = alignment_.site_b[i];
      if (site != 0 && places.contains({site, 0}) && alignment_.a_of[i] != kUnpaired)
        pairs[site].push_back(static_cast<std::uint32_t>(i));
    }
    if (pairs.empty()) return "blocks that were held until then are made again";
    const auto fewest =
        std::ranges::min_element(pairs, {}, [](const auto& one) { return one.second.size(); });
    std::vector<std::size_t> numbers;
    for (const Atom& atom : atoms_.all) {
      if (!affected(atom) || atom.site != fewest->first || atom.stretch != step) continue;
      numbers.push_back(
          static_cast<std::size_t>(std::ranges::find(fewest->second, atom.b) - fewest->second.begin()) + 1);
    }
    return fmt::format("{} of {} repeats of {}{}", numbers.size(), fewest->second.size(),
                       alignment_.sites[fewest->first], which(numbers, fewest->second.size()));
  }

  static std::string which(const std::vector<std::size_t>& numbers, std::size_t all) {
    if (numbers.size() == all || numbers.empty()) return "";
    const std::size_t stride = numbers.size() > 1 ? numbers[1] - numbers[0] : 1;
    for (std::size_t i = 1; i < numbers.size(); ++i) {
      if (numbers[i] - numbers[i - 1] != stride) return fmt::format(" ({})", fmt::join(numbers, ", "));
    }
    if (stride == 1) return fmt::format(" ({} to {})", numbers.front(), numbers.back());
    return fmt::format(" (every {} from {})", stride == 2 ? "second one" : std::to_string(stride) + "th",
                       numbers.front());
  }

  // What comes once in a step comes several times: gradients are accumulated, or there is another forward.
  // Only layers do where activations are recomputed.
  void find_passes() {
    std::map<double, std::size_t> ratios;
    std::size_t lines = 0;
    for (const auto& [site, both] :
         counts_in(std::min({a_.steps.count(), b_.steps.count(), std::size_t{2}}))) {
      if (std::min(both.first, both.second) != 1) continue;
      ++lines;
      ++ratios[static_cast<double>(both.second) / static_cast<double>(both.first)];
    }
    if (ratios.empty()) return;
    const auto most = std::ranges::max_element(ratios, {}, [](const auto& one) { return one.second; });
    const bool all = static_cast<double>(most->second) >= kMost * static_cast<double>(lines);
    if (!all || most->first == 1) return;
    FoundCause* cause =
        take(BlameKind::other, [](const Atom& atom) { return atom.type != Type::size && atom.stretch > 0; });
    if (cause == nullptr) return;
    cause->what = fmt::format("{} passes a step for {}: accumulated gradients, or another forward",
                              std::max(1.0, most->first), std::max(1.0, 1 / most->first));
  }

  void find_input() {
    const double input = input_ratio();
    const double saved = saved_ratio();
    Bytes saved_changed = 0;
    for (const Atom& atom : atoms_.all) {
      if (atom.open && atom.type == Type::size && atom.category_a == Category::activations)
        saved_changed += atom.bytes_a;
    }
    if (saved_changed == 0 || (input == 1 && saved == 1)) return;
    const auto crosses_step = [&](const Atom& atom) {
      return atom.type == Type::life && !atom.never_b &&
             b_.steps.stretch_of(b_.lifetimes[b_.program.actions[atom.b].block].freed) >
                 a_.steps.stretch_of(a_.lifetimes[a_.program.actions[atom.a].block].freed);
    };
    const auto is_library = [](const Atom& atom) {
      return atom.category_a == Category::workspaces && atom.never_a;
    };
    FoundCause* cause = take(BlameKind::larger_input, [&](const Atom& atom) {
      return atom.stretch > 0 && !crosses_step(atom) && !is_library(atom);
    });
    if (cause == nullptr) return;
    cause->what = fmt::format("the input is {} as large, what is saved for backward {}; weights are the same",
                              times_text(input), times_text(saved));
  }

  void find_workspaces() {
    const auto stays = [&](const Atom& atom) {
      const bool of_a = atom.type == Type::only_a;
      const ReadProgram& read = of_a ? a_ : b_;
      const ClientAction& action = read.program.actions[of_a ? atom.a : atom.b];
      return atom.alloc && read.lifetimes[action.block].outlives(read.program);
    };
    const auto is_library = [&](const Atom& atom) {
      return stays(atom) &&
             (atom.category_a == Category::workspaces || atom.category_b == Category::workspaces);
    };
    std::set<std::pair<std::size_t, Type>> replaced;  // what took a workspace's place looks like anything
    for (const Atom& atom : atoms_.all) {
      if (atom.open && atom.is_only() && is_library(atom))
        replaced.insert({atom.stretch, atom.type == Type::only_a ? Type::only_b : Type::only_a});
    }
    const auto kept = [&](const Atom& atom) {
      return is_library(atom) || (stays(atom) && replaced.contains({atom.stretch, atom.type}));
    };
    FoundCause* cause = take(BlameKind::workspace, kept);
    if (cause != nullptr) {
      cause->what = "what a library keeps for itself has another size (CUBLAS_WORKSPACE_CONFIG, a version)";
    }
    std::set<SiteId> in_both;
    for (std::size_t i = 0; i < alignment_.a_of.size(); ++i) {
      if (alignment_.a_of[i] != kUnpaired) in_both.insert(alignment_.site_b[i]);
    }
    const auto brief = [&](const Atom& atom) {
      return atom.alloc && atom.type != Type::life && atom.category() == Category::workspaces &&
             in_both.contains(atom.site) &&
             (atom.type != Type::size || atom.category_a == Category::workspaces);
    };
    cause = take(BlameKind::workspace, brief);
    if (cause == nullptr) return;
    cause->autotuned = true;
    cause->what = "what one call takes and gives back has another size: another algorithm was chosen";
  }

  // Places whose blocks are freed at the same moments belong together.
  void find_late_frees() {
    std::map<std::string, std::set<std::int64_t>> moments;  // of the free in the new program, by place
    for (const Atom& atom : atoms_.all) {
      if (!atom.open || atom.type != Type::life) continue;
      const std::size_t freed = b_.lifetimes[b_.program.actions[atom.b].block].freed;
      moments[name_of_place(atom)].insert(atom.never_b ? -1 : std::int64_t{alignment_.rank_b[freed]});
    }
    for (const auto& places : joined_places(std::move(moments))) {
      FoundCause* cause = take(BlameKind::late_free, [&](const Atom& atom) {
        return atom.type == Type::life && places.contains(name_of_place(atom));
      });
      if (cause == nullptr) continue;
      bool later = false;
      bool earlier = false;
      for (const Atom& atom : atoms_.all) {
        if (atom.cause == found_.causes.size()) (atom.shift > 0 ? later : earlier) = true;
      }
      cause->what = fmt::format("blocks of equal size are freed {}",
                                !earlier ? "later"
                                : !later ? "earlier"
                                         : "at other moments, some later and some earlier");
    }
  }

  // Blocks that came in the place of others are one cause with them.
  void find_others() {
    std::map<std::string, std::set<std::uint32_t>> gaps;
    for (const Atom& atom : atoms_.all) {
      if (atom.open) gaps[name_of_place(atom)].insert(atom.gap);
    }
    auto groups = joined_places(std::move(gaps));
    for (; groups.size() > kMostOthers; groups.pop_back()) groups[kMostOthers - 1].merge(groups.back());
    for (const auto& places : groups) {
      std::size_t only_a = 0;
      std::size_t only_b = 0;
      std::size_t sizes = 0;
      FoundCause* cause = take(BlameKind::other, [&](const Atom& atom) {
        if (!places.contains(name_of_place(atom))) return false;
        ++(atom.type == Type::only_a ? only_a : atom.type == Type::only_b ? only_b : sizes);
        return true;
      });
      if (cause == nullptr) continue;
      cause->what = fmt::format("{} requests more, {} fewer, {} of another size", only_b, only_a, sizes);
    }
  }

  void record() {
    Differences& differences = found_.differences;
    differences.only_a.assign(a_.program.actions.size(), 0);
    differences.only_b.assign(b_.program.actions.size(), 0);
    differences.size.assign(b_.program.actions.size(), 0);
    differences.life.assign(b_.program.actions.size(), 0);
    for (const Atom& atom : atoms_.all) {
      switch (atom.type) {
        case Type::only_a:
          differences.only_a[atom.a] = atom.cause;
          break;
        case Type::only_b:
          differences.only_b[atom.b] = atom.cause;
          break;
        case Type::size:
          differences.size[atom.b] = atom.cause;
          break;
        case Type::life:
          differences.life[atom.b] = atom.cause;
          break;
      }
    }
  }

  const ReadProgram& a_;
  const ReadProgram& b_;
  const Alignment& alignment_;
  Atoms atoms_;
  FoundCauses found_;
};

}  // namespace

FoundCauses find_causes(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment,
                        std::size_t first) {
  return Sorter(a, b, alignment, first).sort();
}

}  // namespace vramlab
