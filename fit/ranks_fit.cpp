#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "fit/alignment.hpp"
#include "fit/fit_model.hpp"

namespace vramlab {
namespace {

/// How a size goes with the number of ranks.
enum class RankLaw : std::uint8_t { same, shared, each };

constexpr std::int64_t kSameSize = 30;
constexpr std::int64_t kShare = 20;
constexpr std::int64_t kGrows = 15;
constexpr std::int64_t kAlike = 10;
constexpr std::int64_t kHundredth = 100;  // shares are padded

__extension__ using WideSize = __int128;

// Whether `a` times `p` is `b` times `q`, to a hundredth.
bool is_share(Bytes a, std::uint32_t p, Bytes b, std::uint32_t q) {
  const WideSize low = std::min(WideSize{a} * p, WideSize{b} * q);
  const WideSize high = std::max(WideSize{a} * p, WideSize{b} * q);
  return (high - low) * kHundredth <= high;
}

/// An allocation as alignment sees it: a size at the largest recorded shape, and its form.
struct RankItem {
  Bytes size = 0;
  std::int32_t form = -1;
  bool kept = false;
};

/// Finds for a model with q ranks what its sizes were in another model, with p ranks.
class RankPairing {
 public:
  RankPairing(const RankModel& few, const RankModel& many)
      : few_(few), many_(many), p_(few.place.world), q_(many.place.world) {}

  FewerRanks run(Bytes& assumed) {
    result_.world = p_;
    pair_tensors();
    follow_collectives();
    follow_sizes(assumed);
    pair_lists();
    return std::move(result_);
  }

 private:
  static Bytes value_of(const RecordedSpec& spec, const SizeForm& form) {
    const auto largest = std::max_element(
        spec.shapes.begin(), spec.shapes.end(), [&](const VariableValues& a, const VariableValues& b) {
          return spec.monomials[spec.main_product].value(a) < spec.monomials[spec.main_product].value(b);
        });
    std::vector<std::int64_t> values;
    for (const Monomial& monomial : spec.monomials) values.push_back(monomial.value(*largest).value_or(0));
    return form.value(values).value_or(0);
  }

  static std::vector<RankItem> items_of(const RecordedSpec& spec) {
    std::vector<Bytes> sizes;
    for (const SizeForm& form : spec.forms) sizes.push_back(value_of(spec, form));
    std::vector<RankItem> items;
    for (const RecordedTensor& tensor : spec.tensors) {
      const Bytes size = tensor.size < 0 ? 0 : sizes[static_cast<std::size_t>(tensor.size)];
      items.push_back({size, tensor.size, tensor.kept >= 0});
    }
    return items;
  }

  // Forms of the same products.
  [[nodiscard]] bool alike(std::int32_t few, std::int32_t many) const {
    if (few < 0 || many < 0) return few == many;
    const SizeForm& a = few_.spec.forms[static_cast<std::size_t>(few)];
    const SizeForm& b = many_.spec.forms[static_cast<std::size_t>(many)];
    return std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end(),
                      [&](const SizeTerm& x, const SizeTerm& y) {
                        return few_.spec.monomials[x.monomial] == many_.spec.monomials[y.monomial];
                      });
  }

  [[nodiscard]] std::int64_t relation(Bytes few, Bytes many) const {
    if (few == many) return kSameSize;
    if (is_share(few, p_, many, q_)) return kShare;
    return is_share(few, q_, many, p_) ? kGrows : 0;
  }

  void pair_tensors() {
    const std::vector<RankItem> few = items_of(few_.spec);
    many_items_ = items_of(many_.spec);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> known;
    const auto score = [&](std::size_t i, std::size_t j) -> std::int64_t {
      const RankItem& a = few[i];
      const RankItem& b = many_items_[j];
      if (a.kept != b.kept) return 0;
      if (a.form < 0 && b.form < 0) return kAlike;
      const auto [entry, fresh] = known.try_emplace({a.form, b.form}, 0);
      if (fresh && alike(a.form, b.form)) entry->second = relation(a.size, b.size);
      return entry->second;
    };
    result_.tensors.assign(many_items_.size(), -1);
    laws_.assign(many_items_.size(), std::nullopt);
    for (const auto& [i, j] : align_sequences(few.size(), many_items_.size(), score)) {
      const std::int64_t how = relation(few[i].size, many_items_[j].size);
      laws_[j] = how == kSameSize || many_items_[j].form < 0 ? RankLaw::same
                 : how == kShare                             ? RankLaw::shared
                                                             : RankLaw::each;
      if (many_items_[j].form < 0) continue;
      // with the numbers that the products have in many_
      SizeForm form = many_.spec.forms[static_cast<std::size_t>(many_items_[j].form)];
      const SizeForm& before = few_.spec.forms[static_cast<std::size_t>(few[i].form)];
      for (std::size_t term = 0; term < form.terms.size(); ++term) {
        form.terms[term].numerator = before.terms[term].numerator;
        form.terms[term].denominator = before.terms[term].denominator;
      }
      result_.tensors[j] = number_of(form);
      seen_[many_items_[j].form].insert({*laws_[j], j});
    }
  }

  std::int32_t number_of(const SizeForm& form) {
    const auto [entry, fresh] = forms_.try_emplace(form, static_cast<std::int32_t>(result_.forms.size()));
    if (fresh) result_.forms.push_back(form);
    return entry->second;
  }

  // The form that tensor `t` would have had with p ranks under `law`.
  void set_law(std::size_t t, RankLaw law) {
    laws_[t] = law;
    if (law == RankLaw::same) return;
    SizeForm form = many_.spec.forms[static_cast<std::size_t>(many_items_[t].form)];
    for (SizeTerm& term : form.terms) {
      term.numerator *= law == RankLaw::shared ? q_ : p_;
      term.denominator *= law == RankLaw::shared ? p_ : q_;
    }
    result_.tensors[t] = number_of(form);
  }

  [[nodiscard]] bool was_seen(std::int32_t form, RankLaw law) const {
    const auto entry = seen_.find(form);
    return entry != seen_.end() && entry->second.contains(law);
  }

  [[nodiscard]] bool is_constant(std::int32_t form) const {
    const auto& terms = many_.spec.forms[static_cast<std::size_t>(form)].terms;
    return terms.size() == 1 && terms[0].monomial == 0;
  }

  // What one rank has and what all have, next to each other: a collective, which fewer ranks may go without.
  // Of weights the whole stays the same; of activations the part does.
  void follow_collectives() {
    for (std::size_t t = 0; t + 1 < many_items_.size(); ++t) {
      const RankItem& a = many_items_[t];
      const RankItem& b = many_items_[t + 1];
      if (laws_[t] || laws_[t + 1] || a.form < 0 || b.form < 0) continue;
      const bool rises = a.size * q_ == b.size;
      if (!rises && b.size * q_ != a.size) continue;
      const std::int32_t part = rises ? a.form : b.form;
      const bool shared =
          was_seen(part, RankLaw::shared) || (!was_seen(part, RankLaw::same) && is_constant(part));
      set_law(rises ? t : t + 1, shared ? RankLaw::shared : RankLaw::same);
      set_law(rises ? t + 1 : t, shared ? RankLaw::same : RankLaw::each);
    }
  }

  // As others of that size, if these agree; else the same.
  void follow_sizes(Bytes& assumed) {
    for (std::size_t t = 0; t < many_items_.size(); ++t) {
      if (laws_[t]) continue;
      const auto entry = seen_.find(many_items_[t].form);
      const bool agree = entry != seen_.end() && entry->second.size() == 1;
      if (!agree) assumed += many_items_[t].size;
      if (agree && many_items_[t].form >= 0) set_law(t, entry->second.begin()->first);
    }
  }

  template <class Size>
  [[nodiscard]] std::vector<Size> paired(const std::vector<Size>& few, const std::vector<Size>& many) const {
    const auto score = [&](std::size_t i, std::size_t j) -> std::int64_t {
      return few[i] < 1 || many[j] < 1 ? 0
                                       : relation(static_cast<Bytes>(few[i]), static_cast<Bytes>(many[j]));
    };
    std::vector<Size> sizes = many;
    for (const auto& [i, j] : align_sequences(few.size(), many.size(), score)) sizes[j] = few[i];
    return sizes;
  }

  void pair_lists() {
    result_.extras = paired(few_.spec.extras, many_.spec.extras);
    result_.build = paired(few_.spec.build, many_.spec.build);
  }

  const RankModel& few_;
  const RankModel& many_;
  std::uint32_t p_;
  std::uint32_t q_;
  std::vector<RankItem> many_items_;
  std::vector<std::optional<RankLaw>> laws_;  ///< by tensor of many_
  /// By form of many_: the laws of what was paired, each with one that has it.
  std::map<std::int32_t, std::map<RankLaw, std::size_t>> seen_;
  std::map<SizeForm, std::int32_t> forms_;
  FewerRanks result_;
};

void require_same_parameters(const RankModel& a, const RankModel& b) {
  if (a.spec.parameters.size() == b.spec.parameters.size() &&
      std::equal(a.spec.parameters.begin(), a.spec.parameters.end(), b.spec.parameters.begin(),
                 [](const Parameter& x, const Parameter& y) { return x.name == y.name; })) {
    return;
  }
  throw InputError("",
                   fmt::format("rank {} of {} and rank {} of {} were recorded with other parameters. Record "
                               "the same shapes on every number of ranks.",
                               a.place.rank, a.place.world, b.place.rank, b.place.world));
}

}  // namespace

RankModels join_ranks(std::vector<RankModel> models, std::vector<std::string>& warnings) {
  const RankModels all(std::move(models));
  std::vector<RankModel> joined = all.all();
  const std::vector<std::uint32_t> worlds = all.worlds();
  for (const RankModel& model : joined) require_same_parameters(joined[0], model);
  Bytes assumed = 0;
  for (RankModel& many : joined) {
    if (worlds.size() < 2 || many.place.world != worlds.back()) continue;
    const std::uint32_t p = worlds[worlds.size() - 2];
    const RankModel* few = nullptr;
    for (const RankModel& model : joined) {
      if (model.place.world == p && (few == nullptr || model.place.rank <= many.place.rank)) few = &model;
    }
    Bytes of_rank = 0;
    many.fewer = RankPairing(*few, many).run(of_rank);
    assumed = std::max(assumed, of_rank);
  }
  if (assumed > 0) {
    warnings.push_back(
        fmt::format("how {} of allocations of a step go with the number of ranks does not show; they are "
                    "taken to stay as with "
                    "{} ranks.",
                    format_bytes(assumed), worlds.back()));
  }
  return RankModels(std::move(joined));
}

}  // namespace vramlab
