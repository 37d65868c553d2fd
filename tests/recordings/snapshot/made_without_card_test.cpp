// Recordings that no card took part in: what they say of themselves, and what is made of it.
#include "recordings/snapshot/made_without_card.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/scripts/recorded_program.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"
#include "tests/recordings/pickle/pickle_text.hpp"

namespace vramlab {
namespace {

using namespace pickle_text;
using testing::ElementsAre;
using testing::HasSubstr;
using Made = ClientAction::Kind;

std::string json_with(const std::string& empty_caches, const std::string& how = "law") {
  return R"({"card": "NVIDIA L4", "total_memory": 23654532874, "torch": "2.11.0", "empty_caches": )" +
         empty_caches + R"(, "parts": [{"name": "cuBLAS workspace", "how": ")" + how +
         R"(", "source": "PyTorch's CUDABlas.cpp", "allocations": 2, "bytes": 16777216}]})";
}

std::string refused_made(const std::string& json) {
  try {
    parse_made_without_card(json, "x.pickle");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string made_entry(const char* action, std::int64_t address, std::int64_t size) {
  return dict(text("action") + text(action) + text("addr") + integer(address) + text("size") + integer(size));
}

TorchSnapshot made_snapshot(const std::string& empty_caches) {
  const std::string json = json_with(empty_caches);
  const std::string long_text = 'X' + number(json.size(), 4) + json;
  const std::string trace =
      list(made_entry("alloc", 4096, 1000) + made_entry("alloc", 8192, 3000000) +
           made_entry("free_requested", 8192, 3000000) + made_entry("free_completed", 8192, 3000000) +
           made_entry("alloc", 16384, 2000));
  return parse_torch_snapshot(whole(dict(text("segments") + list("") + text("device_traces") + list(trace) +
                                         text("made_without_card") + long_text)),
                              "x.pickle");
}

TEST(MadeWithoutCard, SaysForWhichCardAndWhatWasSupplied) {
  const MadeWithoutCard made = parse_made_without_card(json_with("[3, 9]"), "x.pickle");
  EXPECT_EQ(made.card, "NVIDIA L4");
  EXPECT_EQ(made.total_memory, 23'654'532'874);
  EXPECT_THAT(made.empty_caches, ElementsAre(3, 9));
  EXPECT_THAT(
      sentences_of(made),
      ElementsAre(AllOf(HasSubstr("Made without a card"), HasSubstr("2.11.0"), HasSubstr("NVIDIA L4")),
                  "By law: cuBLAS workspace, 2 allocations, at most 16.0 MiB at once: PyTorch's "
                  "CUDABlas.cpp."));
}

TEST(MadeWithoutCard, RefusesWhatItCannotMean) {
  EXPECT_THAT(refused_made("{"), HasSubstr("x.pickle: /made_without_card: is not valid JSON."));
  EXPECT_THAT(refused_made("[]"), HasSubstr("is not an object"));
  EXPECT_THAT(refused_made("{}"), HasSubstr("/made_without_card/card: is missing."));
  EXPECT_THAT(refused_made(json_with("[9, 3]")), HasSubstr("/empty_caches: is not in order"));
  EXPECT_THAT(refused_made(json_with("[-1]")), HasSubstr("/empty_caches: found -1"));
  EXPECT_THAT(refused_made(json_with("[]", "guessed")), HasSubstr("/parts/0/how: \"guessed\" is none of"));
}

// The cache is emptied where the file says, before entry 4; addresses are compared with nothing.
TEST(MadeWithoutCard, IsReplayedAsItSays) {
  const TorchSnapshot snapshot = made_snapshot("[4]");
  ASSERT_TRUE(snapshot.made);
  const ClientProgram program = program_of(snapshot, 0, {});
  std::vector<Made> kinds;
  for (const ClientAction& action : program.actions) kinds.push_back(action.kind);
  EXPECT_THAT(kinds, ElementsAre(Made::alloc, Made::alloc, Made::free, Made::empty_cache, Made::alloc));
  EXPECT_EQ(program.device_total, 23'654'532'874);
  EXPECT_FALSE(program.shown_reserved);
  EXPECT_THAT(program.notes, ElementsAre(HasSubstr("Made without a card"), HasSubstr("By law: cuBLAS")));
}

}  // namespace
}  // namespace vramlab
