#include "lab/json.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "recordings/input_file.hpp"

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

/// Steps over the values of a text that is known to be valid JSON.
class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : text_(text) {}

  std::optional<TextPlace> find(const std::vector<std::string>& path) {
    for (const std::string& step : path) {
      skip_space();
      const char open = now();
      if (open != '{' && open != '[') return std::nullopt;
      ++at_;
      if (!enter(step, open == '{')) return std::nullopt;
    }
    skip_space();
    const std::size_t begin = at_;
    skip_value();
    return TextPlace{begin, at_};
  }

 private:
  [[nodiscard]] char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Stops before the value of member `step`, past the opening bracket.
  bool enter(const std::string& step, bool object) {
    for (std::size_t member = 0;; ++member) {
      skip_space();
      if (now() == '}' || now() == ']' || now() == '\0') return false;
      bool here = std::to_string(member) == step;
      if (object) {
        const std::size_t begin = at_;
        skip_string();
        here = Json::parse(text_.substr(begin, at_ - begin)).get<std::string>() == step;
        skip_space();
        ++at_;  // the colon
      }
      if (here) return true;
      skip_value();
      skip_space();
      if (now() == ',') ++at_;
    }
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (std::string_view{" \t\r\n\xEF\xBB\xBF"}.find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }

  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  void skip_value() {
    skip_space();
    int depth = 0;
    do {
      skip_space();
      if (now() == '"') {
        skip_string();
      } else if (std::string_view{"{[}],:"}.find(now()) != std::string_view::npos) {
        if (now() == '{' || now() == '[') ++depth;
        if (now() == '}' || now() == ']') --depth;
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(" \t\r\n,:]}/", at_), text_.size());
      }
    } while (depth > 0 && at_ < text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Json parse_json(const std::string& text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw InputError(name, "the file is empty.");
  Json json;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::vector<Problem> problems;
  try {
    const Json::parser_callback_t callback = [&](int depth, Json::parse_event_t event, Json& value) {
      if (depth > kDeepest) throw InputError(name, "is nested deeper than 64 levels.");
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
        problems.push_back({name, "key \"" + value.get<std::string>() +
                                      "\" is given twice in one object. Keep one of them."});
      }
      return true;
    };
    json = Json::parse(text, callback, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const Json::parse_error& error) {
    throw InputError(place(text, error.byte, name), "this is not JSON: " + plain_reason(error.what()) + ".");
  } catch (const Json::exception& error) {  // a number that no double can hold
    throw InputError(name, "cannot be read: " + plain_reason(error.what()) + ".");
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return json;
}

Json read_json_file(const fs::path& path) { return parse_json(read_input_file(path), path.string()); }

std::optional<TextPlace> json_place(std::string_view text, const std::vector<std::string>& path) {
  return JsonWalk{text}.find(path);
}

}  // namespace vramlab
