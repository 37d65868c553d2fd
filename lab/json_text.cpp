#include "lab/json_text.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "sim/core/error.hpp"
#include "trace/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 64;  // far more than any file needs, far less than a stack can take

std::string place(const std::string& text, std::size_t byte, const std::string& name) {
  const std::size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto begin = text.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(at);
  const auto line = std::count(begin, end, '\n') + 1;
  const std::size_t line_start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t column = line_start == std::string::npos ? at + 1 : at - line_start;
  return name + ": line " + std::to_string(line) + ", column " + std::to_string(column);
}

// The library's message without its number and position, which `place` gives in our form.
std::string plain_reason(const std::string& message) {
  const std::size_t colon = message.find(": ", message.find("column"));
  return colon == std::string::npos ? message : message.substr(colon + 2);
}

/// Watches the parser for keys that one object has twice.
class TwiceGivenKeys {
 public:
  bool operator()(Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(value.get<std::string>()).second) {
      twice_.push_back(value.get<std::string>());
    }
    return true;
  }
  [[nodiscard]] const std::vector<std::string>& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> keys_;
  std::vector<std::string> twice_;
};

}  // namespace

Json parse_json(const std::string& text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw InputError(name, "the file is empty.");
  TwiceGivenKeys watch;
  Json json;
  try {
    const Json::parser_callback_t callback = [&](int depth, Json::parse_event_t event, Json& value) {
      if (depth > kDeepest) throw InputError(name, "is nested deeper than 64 levels.");
      return watch(event, value);
    };
    json = Json::parse(text, callback, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const Json::parse_error& error) {
    throw InputError(place(text, error.byte, name), "this is not JSON: " + plain_reason(error.what()) + ".");
  } catch (const Json::exception& error) {  // a number that no double can hold
    throw InputError(name, "cannot be read: " + plain_reason(error.what()) + ".");
  }
  std::vector<Problem> problems;
  for (const std::string& key : watch.twice()) {
    problems.push_back({name, "key \"" + key + "\" is given twice in one object. Keep one of them."});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return json;
}

Json read_json_file(const fs::path& path) { return parse_json(read_input_file(path), path.string()); }

}  // namespace vramlab
