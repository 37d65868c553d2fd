#include "lab/whatif/recording.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "recordings/snapshot/peak_attribution.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostRows = 8;      // of a table
constexpr std::size_t kMostNumbers = 4;   // of requests named one by one
constexpr std::size_t kWidestPlace = 40;  // of a frame

const ClientAction& request_of(const ClientProgram& program, const ClientProgram::Failure& failure) {
  return program.actions[failure.action];
}

// The innermost frame that the reader wrote; empty where none was recorded.
std::string place_of(const ClientProgram& program, const ClientProgram::Failure& failure) {
  const StackId stack = request_of(program, failure).detail;
  if (stack == 0 || stack >= program.stacks.size()) return "";
  return shown_frames(program.frames, program.stacks[stack]).front();
}

// The same request, tried again.
bool is_alike(const ClientProgram& program, const ClientProgram::Failure& a,
              const ClientProgram::Failure& b) {
  return request_of(program, a).bytes == request_of(program, b).bytes &&
         place_of(program, a) == place_of(program, b) &&
         mark_after(program, a.action) == mark_after(program, b.action);
}

std::string counted(std::uint64_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string kind_of(const HeldSegment& segment) {
  return fmt::format("{}{}{}", segment.large ? "large" : "small", segment.expandable ? ", expandable" : "",
                     segment.private_pool ? ", private pool" : "");
}

Json memory_json(const HeldMemory& memory) {
  return {{"reserved_bytes", memory.reserved},     {"live_bytes", memory.live},
          {"live_blocks", memory.live_blocks},     {"idle_bytes", memory.idle()},
          {"returnable_bytes", memory.returnable}, {"largest_free_bytes", memory.largest_free}};
}

}  // namespace

std::vector<std::string> failure_sentences(const std::vector<ClientProgram>& programs) {
  std::vector<std::string> sentences;
  for (const ClientProgram& program : programs) {
    if (program.failures.empty()) continue;
    const ClientProgram::Failure& first = program.failures.front();
    const std::string mark = mark_after(program, first.action);
    const std::string place = place_of(program, first);
    const std::size_t count = program.failures.size();
    sentences.push_back(
        fmt::format("{} ran out of memory{}: {} asked for{}{}, {} {} free on the card; {} were live in {} "
                    "and {} reserved "
                    "then.",
                    programs.size() == 1 ? "The recorded program" : program.file,
                    count == 1 ? "" : fmt::format(" {} times, first so", count),
                    oom_size(request_of(program, first).bytes), mark.empty() ? "" : " in " + mark,
                    place.empty() ? "" : " at " + place,
                    first.device_free < request_of(program, first).bytes ? "with" : "in spite of",
                    oom_size(first.device_free), format_bytes(first.live),
                    counted(first.live_blocks, "block"), format_bytes(first.reserved)));
  }
  return sentences;
}

Table failures_table(const ClientProgram& program) {
  Table table{{"failed", "asked for", "free on card", "live", "blocks", "reserved", left("in"), left("at")}};
  std::size_t rows = 0;
  std::size_t i = 0;
  for (; i < program.failures.size() && rows < kMostRows; ++rows) {
    const ClientProgram::Failure& failure = program.failures[i];
    const std::string place = place_of(program, failure);
    const std::string mark = mark_after(program, failure.action);
    std::size_t end = i + 1;
    while (end < program.failures.size() && is_alike(program, failure, program.failures[end])) ++end;
    const std::string numbers = end == i + 1 ? std::to_string(i + 1) : fmt::format("{} to {}", i + 1, end);
    i = end;
    table.add_row({numbers, oom_size(request_of(program, failure).bytes), oom_size(failure.device_free),
                   format_bytes(failure.live), std::to_string(failure.live_blocks),
                   format_bytes(failure.reserved),
                   mark.empty() ? fmt::format("entry {}", request_of(program, failure).source) : mark,
                   place.empty() ? "-" : place.substr(0, kWidestPlace)});
  }
  if (i < program.failures.size()) {
    table.add_row(
        {fmt::format("{} to {}", i + 1, program.failures.size()), "-", "-", "-", "-", "-", "others", "-"});
  }
  return table;
}

std::string served_attempts(const ProgramOutcome& outcome) {
  const std::uint64_t served = outcome.attempts_served();
  const std::size_t all = outcome.attempts.size();
  if (served == 0) return "none";
  if (served == all) return all == 1 ? "it would" : fmt::format("all {}", all);
  if (served > kMostNumbers) return fmt::format("{} of {}", served, all);
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < all; ++i) {
    if (outcome.attempts[i]) numbers.push_back(i + 1);
  }
  return fmt::format("{}", fmt::join(numbers, ", "));
}

Json failures_json(const ClientProgram& program) {
  Json list = Json::array();
  for (const ClientProgram::Failure& failure : program.failures) {
    const ClientAction& request = request_of(program, failure);
    list.push_back({{"entry", request.source},
                    {"requested_bytes", request.bytes},
                    {"device_free_bytes", failure.device_free},
                    {"live_bytes", failure.live},
                    {"live_blocks", failure.live_blocks},
                    {"reserved_bytes", failure.reserved},
                    {"stream", request.stream},
                    {"mark", mark_after(program, failure.action)},
                    {"place", place_of(program, failure)}});
  }
  return list;
}

std::string held_sentence(const ClientProgram& program) {
  const HeldMemory& all = program.held.total;
  return fmt::format(
      "When the snapshot was taken: {} reserved, {} of it live in {} and {} idle, of which empty_cache() "
      "gives "
      "back {}; the largest free block is {}.",
      format_bytes(all.reserved), format_bytes(all.live), counted(all.live_blocks, "block"),
      format_bytes(all.idle()), format_bytes(all.returnable), format_bytes(all.largest_free));
}

// The largest segments first.
Table held_table(const ClientProgram& program) {
  Table table{{left("segment"), "reserved", "live", "idle", "returnable", "largest free", left("kind")}};
  std::vector<HeldSegment> segments = program.held.segments;
  std::stable_sort(segments.begin(), segments.end(),
                   [](const HeldSegment& a, const HeldSegment& b) { return a.reserved > b.reserved; });
  const auto add = [&](const std::string& name, const HeldMemory& memory, const std::string& kind) {
    table.add_row({name, format_bytes(memory.reserved), format_bytes(memory.live),
                   format_bytes(memory.idle()), format_bytes(memory.returnable),
                   format_bytes(memory.largest_free), kind});
  };
  const std::size_t shown = segments.size() <= kMostRows + 1 ? segments.size() : kMostRows;
  HeldMemory others;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const HeldSegment& segment = segments[i];
    if (i < shown) {
      add(fmt::format("{:#x}", segment.address), segment, kind_of(segment));
      continue;
    }
    others.reserved += segment.reserved;
    others.live += segment.live;
    others.returnable += segment.returnable;
    others.largest_free = std::max(others.largest_free, segment.largest_free);
  }
  if (shown < segments.size()) add(fmt::format("{} others", segments.size() - shown), others, "");
  return table;
}

Json held_json(const ClientProgram& program) {
  Json json = memory_json(program.held.total);
  json["segments"] = Json::array();
  for (const HeldSegment& segment : program.held.segments) {
    Json one{{"address", segment.address}, {"stream", segment.stream}, {"kind", kind_of(segment)}};
    one.update(memory_json(segment));
    json["segments"].push_back(std::move(one));
  }
  return json;
}

}  // namespace vramlab
