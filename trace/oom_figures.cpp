#include "trace/oom_figures.hpp"

#include <array>
#include <optional>

namespace vramlab {
namespace {

struct Figure {
  const char* name;
  std::string_view before;
  std::string_view after;
};

// In the order of the message.
constexpr std::array kFigures{
    Figure{"tried to allocate", "Tried to allocate ", ". GPU"},
    Figure{"total capacity", "total capacity of ", " of which"},
    Figure{"allocated by PyTorch", "Of the allocated memory ", " is allocated by PyTorch"},
    Figure{"in private pools", "PyTorch, with ", " allocated in private pools"},
    Figure{"reserved but unallocated", "and ", " is reserved by PyTorch but unallocated"},
};
constexpr std::string_view kLastFigure = "reserved by PyTorch but unallocated";

std::string_view value_of(std::string_view text, const Figure& figure) {
  const std::size_t end = text.find(figure.after);
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end);
  const std::size_t start = text.rfind(figure.before);
  return start == std::string_view::npos ? std::string_view{} : text.substr(start + figure.before.size());
}

// "... memory in use. 4.00 GiB allowed; Of ...", or directly after "is free."
std::string_view allowed_in(std::string_view text) { return value_of(text, {"", ". ", " allowed;"}); }

}  // namespace

std::vector<OomFigureDifference> compare_oom_figures(std::string_view recorded, std::string_view simulated) {
  std::vector<OomFigureDifference> differences;
  const bool whole = recorded.find(kLastFigure) != std::string_view::npos;
  const auto compare = [&](const char* name, std::string_view a, std::string_view b) {
    if (a == b || (a.empty() && !whole)) return;
    differences.push_back({name, std::string(a), std::string(b)});
  };
  for (const Figure& figure : kFigures) {
    compare(figure.name, value_of(recorded, figure), value_of(simulated, figure));
  }
  compare("allowed", allowed_in(recorded), allowed_in(simulated));
  return differences;
}

}  // namespace vramlab
