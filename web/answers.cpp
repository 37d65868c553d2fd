// The verbs for a page or a program in JavaScript (web/module.js). What a recording asked of its allocator is
// kept between questions, so that a further setting costs a replay and no reading.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <emscripten.h>
#include <spawn.h>
#include <sys/prctl.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "lab/scenario/file.hpp"
#include "report/html_page.hpp"

/// Says to plugins/plugin_loader.cpp that there is no dynamic loader.
extern "C" const char vramlab_is_static;
extern "C" const char vramlab_is_static = 1;

// There are no other processes: what emscripten's C library lacks, and its other calls for them say the same.
extern "C" int posix_spawnp(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                            char* const*, char* const*) {
  return ENOSYS;
}
extern "C" int prctl(int, ...) { return -1; }

// clang-format off
EM_JS(void, tell_time_line, (int device, double entry, double bytes), {
  if (Module["onTimeline"]) Module["onTimeline"](device, entry, bytes);
});
// clang-format on

namespace vramlab {

/// Where who made the module has put it (web/program.mjs); a page has no file of that name.
std::filesystem::path our_file() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

namespace {

/// The growing time line of each device of a snapshot that is being read, in coarse steps.
class TimeLine {
 public:
  void operator()(std::size_t device, const TraceEntry& entry) {
    if (device >= lines_.size()) lines_.resize(device + 1);
    Line& line = lines_[device];
    if (entry.action == TraceEntry::Action::alloc) line.bytes += static_cast<double>(entry.size);
    if (entry.action == TraceEntry::Action::free_completed) line.bytes -= static_cast<double>(entry.size);
    line.highest = std::max(line.highest, line.bytes);
    if (++line.entries % kStep != 0) return;
    tell_time_line(static_cast<int>(device), static_cast<double>(line.entries), line.highest);
    line.highest = line.bytes;
  }

 private:
  static constexpr std::uint64_t kStep = 4096;
  struct Line {
    std::uint64_t entries = 0;
    double bytes = 0;  ///< since the history began, so that they may be below 0
    double highest = 0;
  };
  std::vector<Line> lines_;
};

}  // namespace

/// What is kept from one question to the next, and the last answer.
struct WebSession {
  KeptPrograms kept;
  LibraryCall answer;
  Ending ending;
};

}  // namespace vramlab

using vramlab::WebSession;

extern "C" {

EMSCRIPTEN_KEEPALIVE WebSession* web_open() { return new WebSession; }

/// `question`: {"words": [...], "texts": {NAME: "..."}, "page": wanted}, as capi/vramlab.h has it. Returns
/// the exit code.
EMSCRIPTEN_KEEPALIVE int web_ask(WebSession* session, const char* question) {
  session->ending = {};
  session->answer = {};
  session->ending = vramlab::ending_of([&] {
    const auto json = vramlab::Json::parse(question);
    session->answer.texts = json.at("texts").get<std::map<std::string, std::string>>();
    session->answer.wants_page = json.at("page").get<bool>();
    session->answer.kept = &session->kept;
    session->answer.watch = vramlab::TimeLine{};
    return vramlab::run_verb(json.at("words").get<std::vector<std::string>>(), &session->answer);
  });
  return session->ending.code;
}

EMSCRIPTEN_KEEPALIVE const char* web_json(const WebSession* session) { return session->answer.json.c_str(); }
EMSCRIPTEN_KEEPALIVE const char* web_page(const WebSession* session) { return session->answer.page.c_str(); }
EMSCRIPTEN_KEEPALIVE const char* web_text(const WebSession* session) { return session->answer.text.c_str(); }
EMSCRIPTEN_KEEPALIVE const char* web_error(const WebSession* session) {
  return session->ending.error.c_str();
}

/// The answer was taken: its texts need no memory here.
EMSCRIPTEN_KEEPALIVE void web_taken(WebSession* session) {
  session->answer = {};
  session->ending = {};
}

/// The page of --report with marks where title, version and data go; empty where it was built without.
EMSCRIPTEN_KEEPALIVE const char* web_template() {
  const std::string_view page = vramlab::html_template();
  return page.empty() ? "" : page.data();
}

EMSCRIPTEN_KEEPALIVE void web_forget(WebSession* session) { *session = {}; }

}  // extern "C"
