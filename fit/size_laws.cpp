#include "fit/size_laws.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace vramlab {
namespace {

constexpr Bytes kLargeWorkspace = 1_MiB;

class Finder {
 public:
  Finder(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
         const FitParameters& parameters, const SampleValues& values)
      : program_(program), shapes_(shapes), parameters_(parameters), values_(values) {
    laws_.size.assign(program.tensors.size(), 0);
    laws_.knowledge.assign(program.tensors.size(), SizeKnowledge::exact);
  }

  SizeLaws run() {
    for (const UnionTensor& tensor : program_.tensors) samples_.push_back(samples_of(tensor));
    find_main_product();
    const std::vector<std::uint32_t> candidates = likeliest_first();
    std::vector<std::size_t> rest;
    for (std::size_t t = 0; t < samples_.size(); ++t) {
      const auto [entry, fresh] = known_.try_emplace(samples_[t], std::nullopt);
      if (fresh) entry->second = form_of(samples_[t], candidates);
      if (entry->second) {
        laws_.size[t] = number_of(*entry->second);
        remember(t);
      } else {
        rest.push_back(t);
      }
    }
    for (const std::size_t t : rest) {
      if (!borrow(t)) make_table(t, candidates);
    }
    return std::move(laws_);
  }

 private:
  [[nodiscard]] std::vector<SizeSample> samples_of(const UnionTensor& tensor) const {
    std::vector<SizeSample> samples;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      if (tensor.in_shape[shape] < 0) continue;
      const ShapeAllocation& one =
          shapes_[shape].allocations[static_cast<std::size_t>(tensor.in_shape[shape])];
      for (std::size_t round = 0; round < one.sizes.size(); ++round) {
        samples.push_back({values_(shape, one.loop, round), one.sizes[round]});
      }
    }
    return samples;
  }

  // The product that alone, times a constant, describes most bytes of tensors seen everywhere.
  void find_main_product() {
    std::vector<double> bytes(parameters_.monomials.size(), 0);
    for (std::size_t t = 0; t < samples_.size(); ++t) {
      if (program_.tensors[t].shapes() != all_shapes() || samples_[t].size() < 2) continue;
      double total = 0;
      for (const SizeSample& sample : samples_[t]) total += static_cast<double>(sample.size);
      for (std::uint32_t m = 1; m < parameters_.monomials.size(); ++m) {
        const std::uint32_t only[] = {m};
        if (find_exact_form(samples_[t], only)) bytes[m] += total;
      }
    }
    const auto most = std::max_element(bytes.begin() + 1, bytes.end());
    if (most != bytes.end()) laws_.main_product = static_cast<std::uint32_t>(most - bytes.begin());
  }

  [[nodiscard]] std::vector<std::uint32_t> likeliest_first() const {
    std::vector<std::uint32_t> candidates(parameters_.monomials.size());
    std::iota(candidates.begin(), candidates.end(), 0U);
    const auto main = std::find(candidates.begin(), candidates.end(), laws_.main_product);
    std::rotate(std::min(candidates.begin() + 1, main), main, main + 1);
    return candidates;
  }

  [[nodiscard]] ShapeSet all_shapes() const {
    return shapes_.size() >= kMostShapes ? ~ShapeSet{0} : (ShapeSet{1} << shapes_.size()) - 1;
  }

  std::int32_t number_of(const SizeForm& form) {
    const auto [entry, fresh] =
        form_numbers_.try_emplace(form, static_cast<std::int32_t>(laws_.forms.size()));
    if (fresh) laws_.forms.push_back(form);
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
    for (const SizeSample& sample : samples_[tensor]) lenders_.try_emplace(sample, laws_.size[tensor]);
  }

  bool borrow(std::size_t tensor) {
    if (samples_[tensor].size() != 1) return false;
    const auto lender = lenders_.find(samples_[tensor][0]);
    if (lender == lenders_.end()) return false;
    laws_.size[tensor] = lender->second;
    laws_.knowledge[tensor] = SizeKnowledge::borrowed;
    return true;
  }

  void make_table(std::size_t tensor, const std::vector<std::uint32_t>& candidates) {
    RecordedTable table{std::vector<Bytes>(shapes_.size(), 0), std::vector<std::int32_t>(shapes_.size(), -1)};
    std::size_t seen = 0;
    bool brief = true;
    bool in_loop = false;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      const std::int32_t local = program_.tensors[tensor].in_shape[shape];
      if (local < 0) continue;
      const ShapeAllocation& one = shapes_[shape].allocations[static_cast<std::size_t>(local)];
      // in a loop the rounds' mean; sizes there nearly always have a form
      table.sizes[shape] = std::accumulate(one.sizes.begin(), one.sizes.end(), Bytes{0}) / one.sizes.size();
      ++seen;
      brief = brief && one.brief;
      in_loop = in_loop || one.loop >= 0;
    }
    table.scales = brief && *std::max_element(table.sizes.begin(), table.sizes.end()) >= kLargeWorkspace;
    const auto [entry, fresh] =
        table_numbers_.try_emplace(table, static_cast<std::int32_t>(laws_.tables.size()));
    if (fresh) {
      if (!in_loop) find_algorithms(table, candidates);
      laws_.tables.push_back(table);
    }
    laws_.size[tensor] = -1 - entry->second;
    laws_.knowledge[tensor] = seen == 1 ? SizeKnowledge::single : SizeKnowledge::interpolated;
    const auto& forms = laws_.tables[static_cast<std::size_t>(entry->second)].forms;
    if (std::any_of(forms.begin(), forms.end(), [](std::int32_t form) { return form >= 0; })) {
      laws_.knowledge[tensor] = SizeKnowledge::by_algorithm;
    }
  }

  // Shapes at which a library chose one algorithm share a form.
  void find_algorithms(RecordedTable& table, const std::vector<std::uint32_t>& candidates) {
    std::vector<SizeSample> samples;
    std::vector<std::size_t> shapes;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      if (table.sizes[shape] == 0) continue;
      samples.push_back({values_(shape, -1, 0), table.sizes[shape]});
      shapes.push_back(shape);
    }
    for (const SizePiece& piece : find_pieces(samples, candidates)) {
      for (const std::size_t sample : piece.samples) table.forms[shapes[sample]] = number_of(piece.form);
    }
  }

  const UnionProgram& program_;
  const std::vector<ShapeProgram>& shapes_;
  const FitParameters& parameters_;
  const SampleValues& values_;
  SizeLaws laws_;
  std::vector<std::vector<SizeSample>> samples_;  // by tensor
  std::map<std::vector<SizeSample>, std::optional<SizeForm>> known_;
  std::map<SizeForm, std::int32_t> form_numbers_;
  std::map<RecordedTable, std::int32_t> table_numbers_;  // by sizes alone
  std::map<SizeSample, std::int32_t> lenders_;
};

}  // namespace

SizeLaws find_size_laws(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                        const FitParameters& parameters, const SampleValues& values) {
  return Finder(program, shapes, parameters, values).run();
}

}  // namespace vramlab
