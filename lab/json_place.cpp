#include "lab/json_place.hpp"

#include <algorithm>

#include "lab/json_text.hpp"

namespace vramlab {
namespace {

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
      } else if (now() == '{' || now() == '[') {
        ++depth;
        ++at_;
      } else if (now() == '}' || now() == ']') {
        --depth;
        ++at_;
      } else if (now() == ',' || now() == ':') {
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

std::optional<TextPlace> json_place(std::string_view text, const std::vector<std::string>& path) {
  return JsonWalk{text}.find(path);
}

}  // namespace vramlab
