#include "trace/oom_figures.hpp"

#include <array>
#include <optional>

#include "trace/oom_message.hpp"

namespace vramlab {
namespace {

struct Figure {
  const char* name;
  std::optional<PrintedSize> OomMessage::*value;
};

// In the order of the message, but for "allowed", which is compared last.
constexpr std::array kFigures{
    Figure{"tried to allocate", &OomMessage::tried},
    Figure{"total capacity", &OomMessage::total},
    Figure{"allocated by PyTorch", &OomMessage::allocated},
    Figure{"in private pools", &OomMessage::private_pools},
    Figure{"reserved but unallocated", &OomMessage::idle},
    Figure{"allowed", &OomMessage::allowed},
};

std::string text_of(const std::optional<PrintedSize>& size) { return size ? size->text : std::string{}; }

}  // namespace

std::vector<OomFigureDifference> compare_oom_figures(std::string_view recorded, std::string_view simulated) {
  const OomMessage real = parse_oom_message(recorded);
  const OomMessage ours = parse_oom_message(simulated);
  std::vector<OomFigureDifference> differences;
  for (const Figure& figure : kFigures) {
    const std::string a = text_of(real.*figure.value);
    const std::string b = text_of(ours.*figure.value);
    const bool behind_the_cut = a.empty() && !real.idle;
    if (a != b && !behind_the_cut) differences.push_back({figure.name, a, b});
  }
  return differences;
}

}  // namespace vramlab
