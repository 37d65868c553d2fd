// How bad input is reported: a list of problems, each with its place, thrown as one exception.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// One thing wrong with an input: where it is and what to do about it.
struct Problem {
  std::string where;  ///< file, and inside it a JSON pointer ("/device/limit") or a byte offset; may be empty
  std::string what;   ///< what was found, what is allowed, what to do; one line

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Input that cannot be used. Carries every problem that was found; `vramlab` ends with exit code 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Problem> problems);
  InputError(std::string where, std::string what);

  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// A broken promise of our own code (an invariant, a contract); `vramlab` ends with exit code 3.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The candidate nearest to `name` by edit distance, for "did you mean". Empty if none is close.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// ` Did you mean "x"?` for a close candidate, else ` Known: a, b, c.`; begins with a space.
std::string suggest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace vramlab
