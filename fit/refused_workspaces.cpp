#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "fit/fit_model.hpp"

namespace vramlab {
namespace {

constexpr Bytes kRounding = 512;  // of refused requests in a history (R1.2)

class RefusalReader {
 public:
  RefusalReader(const UnionProgram& program, const std::vector<ShapeProgram>& shapes, RecordedSpec& spec)
      : program_(program), shapes_(shapes), spec_(spec) {
    number_kernels();
  }

  void read(const RecordedRun& run, const ChosenSteps& chosen) {
    std::map<std::size_t, std::size_t> reached;  // by shape: allocations that an earlier step of the run made
    for (const StepRecord& step : run.steps) {
      const std::optional<std::size_t> shape = chosen.shape_of(step);
      if (!shape) continue;
      for (const RefusedRequests& row : step.refusals) read(step, row, *shape, reached[*shape]);
      const std::size_t allocations =
          step.mark.oom ? step.allocations.size() : std::numeric_limits<std::size_t>::max();
      reached[*shape] = std::max(reached[*shape], allocations);
    }
  }

  /// Kernels that nothing is known of are left out.
  void finish() {
    std::map<std::int32_t, std::int32_t> numbers;
    for (auto& [kernel, by_shape] : refusals_) {
      numbers[kernel] = static_cast<std::int32_t>(spec_.kernels.size());
      RecordedKernel& known = spec_.kernels.emplace_back();
      for (auto& [shape, sizes] : by_shape) known.refusals.push_back({shape, std::move(sizes)});
    }
    for (RecordedTensor& tensor : spec_.tensors) {
      const auto number = numbers.find(tensor.kernel);
      tensor.kernel = number == numbers.end() ? -1 : number->second;
    }
  }

 private:
  void number_kernels() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> numbers;
    std::optional<std::int32_t> output;
    for (RecordedTensor& tensor : spec_.tensors) {
      if (!tensor.workspace) {
        output = tensor.size;
      } else if (output) {
        const auto next = static_cast<std::int32_t>(numbers.size());
        tensor.kernel = numbers.try_emplace({tensor.size, *output}, next).first->second;
      }
    }
  }

  [[nodiscard]] std::size_t place(std::size_t tensor, std::size_t shape) const {
    return static_cast<std::size_t>(program_.tensors[tensor].in_shape[shape]);
  }

  /// The place of the first allocation of `kernel` in the step at `shape`.
  [[nodiscard]] std::size_t first_place(std::int32_t kernel, std::size_t shape) const {
    for (std::size_t t = 0; t < spec_.tensors.size(); ++t) {
      if (spec_.tensors[t].kernel == kernel && program_.tensors[t].in_shape[shape] >= 0)
        return place(t, shape);
    }
    return 0;
  }

  void read(const StepRecord& step, const RefusedRequests& row, std::size_t shape, std::size_t reached) {
    if (row.after == 0) return;
    const auto& allocations = shapes_[shape].allocations;
    const Bytes output = step.allocations[row.after - 1].size;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    std::optional<std::pair<std::size_t, bool>> found;  // tensor, whether a kept plan was asked for first
    for (std::size_t t = 0; t < spec_.tensors.size(); ++t) {
      const std::int32_t kernel = spec_.tensors[t].kernel;
      if (kernel < 0 || program_.tensors[t].in_shape[shape] < 1) continue;
      const std::size_t at = place(t, shape);
      if (allocations[at - 1].sizes[0] != output) continue;
      const std::size_t first = first_place(kernel, shape);
      const bool planned = reached > first || row.after > first;
      const std::size_t begin = planned ? 1 : 0;
      if (row.sizes.size() <= begin || row.sizes[begin] != round_up(allocations[at].sizes[0], kRounding))
        continue;
      const std::size_t distance = at > row.after ? at - row.after : row.after - at;
      if (distance >= least) continue;
      least = distance;
      found = {t, planned};
    }
    if (found) keep(step, row, shape, found->first, found->second);
  }

  void keep(const StepRecord& step, const RefusedRequests& row, std::size_t shape, std::size_t tensor,
            bool planned) {
    std::vector<Bytes> sizes(row.sizes.begin() + (planned ? 1 : 0), row.sizes.end());
    if (row.after < step.allocations.size()) {
      const StepAllocation& next = step.allocations[row.after];
      const auto& allocations = shapes_[shape].allocations;
      const std::size_t after = place(tensor, shape) + 1;
      const bool expected = after < allocations.size() && allocations[after].sizes[0] == next.size;
      if (!expected && next.is_brief()) sizes.push_back(round_up(next.size, kRounding));
    }
    auto& known = refusals_[spec_.tensors[tensor].kernel][static_cast<std::uint32_t>(shape)];
    if (sizes.size() > known.size()) known = std::move(sizes);
  }

  const UnionProgram& program_;
  const std::vector<ShapeProgram>& shapes_;
  RecordedSpec& spec_;
  std::map<std::int32_t, std::map<std::uint32_t, std::vector<Bytes>>> refusals_;  // by kernel: sizes by shape
};

}  // namespace

void find_refused_workspaces(const std::vector<RecordedRun>& runs, const ChosenSteps& chosen,
                             const UnionProgram& union_program, const std::vector<ShapeProgram>& shapes,
                             RecordedSpec& spec) {
  if (!spec.loops.empty()) return;  // a row of refusals has no place in a loop
  RefusalReader reader(union_program, shapes, spec);
  for (const RecordedRun& run : runs) reader.read(run, chosen);
  reader.finish();
}

}  // namespace vramlab
