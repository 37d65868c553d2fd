#include "fit/size_laws.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace vramlab {
namespace {

constexpr Bytes kLargeWorkspace = 1_MiB;

class Finder {
 public:
  Finder(const UnionProgram& program, const std::vector<ShapeProgram>& shapes, const SampleValues& values,
         RecordedSpec& spec)
      : program_(program),
        shapes_(shapes),
        values_(values),
        spec_(spec),
        knowledge_(program.tensors.size(), SizeKnowledge::exact) {}

  std::vector<SizeKnowledge> run() {
    for (const UnionTensor& tensor : program_.tensors)
      samples_.push_back(size_samples(tensor, shapes_, values_));
    find_main_product();
    const std::vector<std::uint32_t> candidates = likeliest_first();
    std::vector<std::size_t> rest;
    for (std::size_t t = 0; t < samples_.size(); ++t) {
      const auto [entry, fresh] = known_.try_emplace(samples_[t], std::nullopt);
      if (fresh) entry->second = form_of(samples_[t], candidates);
      if (entry->second) {
        spec_.tensors[t].size = number_of(*entry->second);
        remember(t);
      } else {
        rest.push_back(t);
      }
    }
    for (const std::size_t t : rest) {
      if (!borrow(t)) make_table(t, candidates);
    }
    return std::move(knowledge_);
  }

 private:
  // The product that alone, times a constant, describes most bytes of tensors seen everywhere.
  void find_main_product() {
    std::vector<double> bytes(spec_.monomials.size(), 0);
    for (std::size_t t = 0; t < samples_.size(); ++t) {
      const auto& in_shape = program_.tensors[t].in_shape;
      if (std::count(in_shape.begin(), in_shape.end(), -1) > 0 || samples_[t].size() < 2) continue;
      double total = 0;
      for (const SizeSample& sample : samples_[t]) total += static_cast<double>(sample.size);
      for (std::uint32_t m = 1; m < spec_.monomials.size(); ++m) {
        const std::uint32_t only[] = {m};
        if (find_exact_form(samples_[t], only)) bytes[m] += total;
      }
    }
    const auto most = std::max_element(bytes.begin() + 1, bytes.end());
    if (most != bytes.end()) spec_.main_product = static_cast<std::uint32_t>(most - bytes.begin());
  }

  [[nodiscard]] std::vector<std::uint32_t> likeliest_first() const {
    std::vector<std::uint32_t> candidates(spec_.monomials.size());
    std::iota(candidates.begin(), candidates.end(), 0U);
    const auto main = std::find(candidates.begin(), candidates.end(), spec_.main_product);
    std::rotate(std::min(candidates.begin() + 1, main), main, main + 1);
    return candidates;
  }

  std::int32_t number_of(const SizeForm& form) {
    const auto [entry, fresh] =
        form_numbers_.try_emplace(form, static_cast<std::int32_t>(spec_.forms.size()));
    if (fresh) spec_.forms.push_back(form);
    return entry->second;
  }

  // Where there is but one shape, what was recorded there is all there is to know.
  [[nodiscard]] std::optional<SizeForm> form_of(const std::vector<SizeSample>& samples,
                                                const std::vector<std::uint32_t>& candidates) const {
    if (shapes_.size() > 1) return find_exact_form(samples, candidates);
    return SizeForm{{{0, static_cast<std::int64_t>(samples[0].size), 1}}};
  }

  // For those that are seen at one shape only: which form gave this size there.
  void remember(std::size_t tensor) {
    if (samples_[tensor].size() < 2) return;
    for (const SizeSample& sample : samples_[tensor])
      lenders_.try_emplace(sample, spec_.tensors[tensor].size);
  }

  bool borrow(std::size_t tensor) {
    const std::vector<SizeSample>& seen = samples_[tensor];  // the same in each round of a loop
    if (std::adjacent_find(seen.begin(), seen.end(), std::not_equal_to<>()) != seen.end()) return false;
    const auto lender = lenders_.find(samples_[tensor][0]);
    if (lender == lenders_.end()) return false;
    spec_.tensors[tensor].size = lender->second;
    knowledge_[tensor] = SizeKnowledge::borrowed;
    return true;
  }

  void make_table(std::size_t tensor, const std::vector<std::uint32_t>& candidates) {
    RecordedTable table{std::vector<Bytes>(shapes_.size(), 0), std::vector<std::int32_t>(shapes_.size(), -1)};
    std::size_t seen = 0;
    bool brief = true;
    bool in_loop = false;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      const ShapeAllocation* one = program_.tensors[tensor].in(shapes_, shape);
      if (one == nullptr) continue;
      // in a loop the rounds' mean; sizes there nearly always have a form
      table.sizes[shape] =
          std::accumulate(one->sizes.begin(), one->sizes.end(), Bytes{0}) / one->sizes.size();
      ++seen;
      brief = brief && one->brief;
      in_loop = in_loop || one->loop >= 0;
    }
    table.scales = brief && *std::max_element(table.sizes.begin(), table.sizes.end()) >= kLargeWorkspace;
    const auto [entry, fresh] =
        table_numbers_.try_emplace(table, static_cast<std::int32_t>(spec_.tables.size()));
    if (fresh) {
      if (!in_loop) find_algorithms(table, candidates);
      spec_.tables.push_back(table);
    }
    spec_.tensors[tensor].size = -1 - entry->second;
    const auto& forms = spec_.tables[static_cast<std::size_t>(entry->second)].forms;
    knowledge_[tensor] = *std::max_element(forms.begin(), forms.end()) >= 0 ? SizeKnowledge::by_algorithm
                         : seen == 1                                        ? SizeKnowledge::single
                                                                            : SizeKnowledge::interpolated;
  }

  // Shapes at which a library chose one algorithm share a form.
  void find_algorithms(RecordedTable& table, const std::vector<std::uint32_t>& candidates) {
    std::vector<SizeSample> samples;
    std::vector<std::int32_t*> forms;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      if (table.sizes[shape] == 0) continue;
      samples.push_back({values_(shape, -1, 0), table.sizes[shape]});
      forms.push_back(&table.forms[shape]);
    }
    for (const SizePiece& piece : find_pieces(samples, candidates)) {
      for (const std::size_t sample : piece.samples) *forms[sample] = number_of(piece.form);
    }
  }

  const UnionProgram& program_;
  const std::vector<ShapeProgram>& shapes_;
  const SampleValues& values_;
  RecordedSpec& spec_;
  std::vector<SizeKnowledge> knowledge_;          // by tensor
  std::vector<std::vector<SizeSample>> samples_;  // by tensor
  std::map<std::vector<SizeSample>, std::optional<SizeForm>> known_;
  std::map<SizeForm, std::int32_t> form_numbers_;
  std::map<RecordedTable, std::int32_t> table_numbers_;  // by sizes alone
  std::map<SizeSample, std::int32_t> lenders_;
};

}  // namespace

std::vector<SizeSample> size_samples(const UnionTensor& tensor, const std::vector<ShapeProgram>& shapes,
                                     const SampleValues& values) {
  std::vector<SizeSample> samples;
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    const ShapeAllocation* one = tensor.in(shapes, shape);
    for (std::size_t round = 0; one != nullptr && round < one->sizes.size(); ++round) {
      samples.push_back({values(shape, one->loop, round), one->sizes[round]});
    }
  }
  return samples;
}

std::vector<SizeKnowledge> find_size_laws(const UnionProgram& program,
                                          const std::vector<ShapeProgram>& shapes, const SampleValues& values,
                                          RecordedSpec& spec) {
  return Finder(program, shapes, values, spec).run();
}

}  // namespace vramlab
