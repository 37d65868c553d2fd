#include "models/ranks.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

__extension__ using WideNumber = __int128;
constexpr std::int64_t kMostPadding = 100;  // a hundredth

/// A number as a fraction.
struct Fraction {
  WideNumber numerator = 0;
  WideNumber denominator = 1;
};

struct RankCounts {
  std::uint32_t p = 1;
  std::uint32_t q = 2;
  std::uint32_t n = 4;
};

// `of_p` and `of_q` in units of 1 / denominator.
Fraction with_ranks(WideNumber of_p, WideNumber of_q, std::int64_t denominator, const RankCounts& counts) {
  const auto [p, q, n] = counts;
  const WideNumber steps = q - p;
  if (of_q < of_p) {
    const WideNumber constant = of_q * q - of_p * p;  // times `steps`
    if (constant * kMostPadding > of_q * steps) {
      return {constant * n + (of_p - of_q) * p * q, WideNumber{denominator} * n * steps};
    }
    return {std::min(of_p * p, of_q * q), WideNumber{denominator} * n};
  }
  const WideNumber constant = of_p * q - of_q * p;  // times `steps`
  if (of_q == of_p || constant < 0) return {of_q, denominator};
  return {constant + (of_q - of_p) * n, denominator * steps};
}

WideNumber next_whole(const Fraction& value) {
  return (value.numerator + value.denominator - 1) / value.denominator;
}

SizeTerm term_with_ranks(const SizeTerm& of_p, const SizeTerm& of_q, const RankCounts& counts) {
  const std::int64_t common = std::lcm(of_p.denominator, of_q.denominator);
  const auto scaled = [&](const SizeTerm& term) {
    return WideNumber{term.numerator} * (common / term.denominator);
  };
  Fraction value = with_ranks(scaled(of_p), scaled(of_q), common, counts);
  WideNumber a = value.numerator < 0 ? -value.numerator : value.numerator;
  WideNumber b = value.denominator;
  while (b != 0) a = std::exchange(b, a % b);
  if (a > 0) value = {value.numerator / a, value.denominator / a};
  if (value.denominator > kMostDenominator) value = {next_whole(value), 1};
  constexpr WideNumber kMost = std::int64_t{1} << 62;
  return {of_q.monomial, static_cast<std::int64_t>(std::clamp(value.numerator, -kMost, kMost)),
          static_cast<std::int64_t>(value.denominator)};
}

// Forms of different products have nothing in common.
SizeForm form_with_ranks(const SizeForm& of_p, const SizeForm& of_q, const RankCounts& counts) {
  if (of_p.terms.size() != of_q.terms.size() || of_p.unit != of_q.unit) return of_q;
  SizeForm form{.terms = {}, .unit = of_q.unit, .most = of_q.most};
  for (std::size_t i = 0; i < of_q.terms.size(); ++i) {
    if (of_p.terms[i].monomial != of_q.terms[i].monomial) return of_q;
    form.terms.push_back(term_with_ranks(of_p.terms[i], of_q.terms[i], counts));
  }
  return form;
}

void set_sizes(RankModel& model, std::uint32_t n) {
  const FewerRanks& fewer = *model.fewer;
  const RankCounts counts{fewer.world, model.place.world, n};
  RecordedSpec& spec = model.spec;
  std::map<SizeForm, std::int32_t> numbers;
  for (std::size_t form = 0; form < spec.forms.size(); ++form) {
    numbers.try_emplace(spec.forms[form], static_cast<std::int32_t>(form));
  }
  for (std::size_t t = 0; t < spec.tensors.size(); ++t) {
    std::int32_t& size = spec.tensors[t].size;
    if (size < 0 || fewer.tensors[t] < 0) continue;
    const SizeForm form = form_with_ranks(fewer.forms[static_cast<std::size_t>(fewer.tensors[t])],
                                          spec.forms[static_cast<std::size_t>(size)], counts);
    const auto [entry, fresh] = numbers.try_emplace(form, static_cast<std::int32_t>(spec.forms.size()));
    if (fresh) spec.forms.push_back(form);
    size = entry->second;
  }
  const auto follow = [&](auto& of_q, const auto& of_p) {
    for (std::size_t i = 0; i < of_q.size(); ++i) {
      if (of_q[i] < 1) continue;  // a free
      of_q[i] = static_cast<std::decay_t<decltype(of_q[i])>>(
          size_with_ranks(static_cast<Bytes>(of_p[i]), static_cast<Bytes>(of_q[i]), counts.p, counts.q, n));
    }
  };
  follow(spec.extras, fewer.extras);
  follow(spec.build, fewer.build);
  spec.failures.clear();  // with another number of ranks
  spec.segments.clear();
}

}  // namespace

Bytes size_with_ranks(Bytes of_p, Bytes of_q, std::uint32_t p, std::uint32_t q, std::uint32_t n) {
  const Fraction value =
      with_ranks(static_cast<WideNumber>(of_p), static_cast<WideNumber>(of_q), 1, {p, q, n});
  return static_cast<Bytes>(std::max<WideNumber>(next_whole(value), 1));
}

RankModels::RankModels(std::vector<RankModel> models) : models_(std::move(models)) {
  if (models_.empty()) throw InputError("", "holds no rank.");
  std::sort(models_.begin(), models_.end(),
            [](const RankModel& a, const RankModel& b) { return a.place < b.place; });
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const RankModel& model = models_[i];
    const auto [world, rank] = model.place;
    const auto wrong = [&, rank = rank, world = world](const char* what) {
      throw InputError("", "rank " + std::to_string(rank) + " of " + std::to_string(world) + ' ' + what);
    };
    if (world > kMostRanks || rank >= world) wrong("does not exist.");
    if (i > 0 && models_[i - 1].place == model.place) wrong("is there twice.");
    if (!model.fewer) continue;
    if (model.fewer->world >= world || model.fewer->world == 0 ||
        model.fewer->tensors.size() != model.spec.tensors.size() ||
        model.fewer->extras.size() != model.spec.extras.size() ||
        model.fewer->build.size() != model.spec.build.size()) {
      wrong("and what it was with fewer ranks do not belong together.");
    }
    for (const std::int32_t form : model.fewer->tensors) {
      if (form >= static_cast<std::int64_t>(model.fewer->forms.size()))
        wrong("names a form that is not there.");
    }
  }
}

std::vector<std::uint32_t> RankModels::worlds() const {
  std::vector<std::uint32_t> worlds;
  for (const RankModel& model : models_) {
    if (worlds.empty() || worlds.back() != model.place.world) worlds.push_back(model.place.world);
  }
  return worlds;
}

bool RankModels::was_recorded(std::uint32_t world) const {
  return std::any_of(models_.begin(), models_.end(),
                     [&](const RankModel& model) { return model.place.world == world; });
}

Bytes RankModels::outside(const RankModel& largest, std::uint32_t world) const {
  const Bytes last = largest.spec.outside;
  const RankModel* before = nullptr;
  for (const RankModel& model : models_) {
    if (model.place.world > 1 && model.place.world < largest.place.world && model.spec.outside > 0)
      before = &model;
  }
  if (before == nullptr || last <= before->spec.outside) return last;
  const Bytes each = (last - before->spec.outside) / (largest.place.world - before->place.world);
  if (world > largest.place.world) return last + each * (world - largest.place.world);
  return last - std::min(last, each * (largest.place.world - world));
}

std::vector<RankModel> RankModels::at(std::uint32_t world) const {
  const std::vector<std::uint32_t> recorded = worlds();
  if (world == 0 || world > kMostRanks) {
    throw InputError(
        "", std::to_string(world) + " ranks are out of range, 1 to " + std::to_string(kMostRanks) + ".");
  }
  const std::uint32_t from = was_recorded(world) ? world : recorded.back();
  std::vector<RankModel> models;
  for (const RankModel& model : models_) {
    if (model.place.world != from) continue;
    if (from == world) {
      models.push_back(model);
      continue;
    }
    if (!model.fewer) {
      throw InputError("", "nothing is known of " + std::to_string(world) + " ranks: all recordings are of " +
                               std::to_string(from) +
                               ". Record another number of ranks as well and fit them together.");
    }
    if (model.place.rank >= world) continue;
    RankModel& one = models.emplace_back(model);
    set_sizes(one, world);
    one.spec.outside = outside(model, world);
    one.place.world = world;
    one.fewer.reset();
  }
  return models;
}

}  // namespace vramlab
