// The verbs behind a C function: words in, the program's answer out.
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "capi/description.hpp"
#include "capi/vramlab.h"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"

struct vramlab_answer {
  int code = 0;
  std::string json;
  std::string text;
  std::string error;
};

struct vramlab_policies {
  std::shared_ptr<const vramlab::PolicySet> set = vramlab::builtin_policies();
  std::string error;
};

namespace vramlab {
namespace {

std::vector<std::string> words_of(const Json& json) {
  const bool known = json.contains("words") && json["words"].is_array() && !json["words"].empty() &&
                     std::ranges::all_of(json["words"], [](const Json& word) { return word.is_string(); });
  if (!known) throw InputError("/words", "must be a list of texts: a verb and what it is given.");
  return json["words"].get<std::vector<std::string>>();
}

std::map<std::string, std::string> texts_of(const Json& json) {
  if (!json.contains("texts")) return {};
  const Json& texts = json["texts"];
  const bool known =
      texts.is_object() && std::ranges::all_of(texts, [](const Json& text) { return text.is_string(); });
  if (!known) throw InputError("/texts", "must be an object of texts, each by the name of its file.");
  return texts.get<std::map<std::string, std::string>>();
}

int asked(const char* question, const vramlab_policies* policies, LibraryCall& call) {
  const Json json = parse_object(question, "the question");
  call.texts = texts_of(json);
  if (policies != nullptr) call.policies = policies->set;
  return run_verb(words_of(json), &call);
}

}  // namespace
}  // namespace vramlab

extern "C" {

vramlab_answer* vramlab_ask(const char* json, const vramlab_policies* policies) {
  auto* answer = new (std::nothrow) vramlab_answer;
  if (answer == nullptr) return nullptr;
  const int failed = vramlab::guarded([&] {
    vramlab::LibraryCall call;
    vramlab::Ending ending = vramlab::ending_of([&] { return vramlab::asked(json, policies, call); });
    *answer = {ending.code, std::move(call.json), std::move(call.text), std::move(ending.error)};
  });
  if (failed != 0) answer->code = vramlab::kInternalError;
  return answer;
}

void vramlab_answer_destroy(vramlab_answer* answer) { delete answer; }

int vramlab_answer_code(const vramlab_answer* answer) {
  return answer == nullptr ? vramlab::kInternalError : answer->code;
}
const char* vramlab_answer_json(const vramlab_answer* answer) {
  return answer == nullptr ? "" : answer->json.c_str();
}
const char* vramlab_answer_text(const vramlab_answer* answer) {
  return answer == nullptr ? "" : answer->text.c_str();
}
const char* vramlab_answer_error(const vramlab_answer* answer) {
  return answer == nullptr ? "there was no memory for an answer" : answer->error.c_str();
}

vramlab_policies* vramlab_policies_create(void) {
  vramlab_policies* made = nullptr;
  vramlab::guarded([&] { made = new vramlab_policies; });
  return made;
}

void vramlab_policies_destroy(vramlab_policies* policies) { delete policies; }

int vramlab_policies_add(vramlab_policies* policies, const char* json, vramlab_policy_call call,
                         void* context) {
  if (policies == nullptr) return 1;
  const int failed = vramlab::guarded([&] {
    const vramlab::Json described = vramlab::parse_object(json, "the policy's description");
    policies->set = vramlab::with_callback_policy(policies->set, described, call, context);
  });
  if (failed != 0) vramlab::guarded([&] { policies->error = vramlab::last_error; });
  return failed;
}

const char* vramlab_policies_error(const vramlab_policies* policies) {
  return policies == nullptr ? "the policies are NULL" : policies->error.c_str();
}

}  // extern "C"
