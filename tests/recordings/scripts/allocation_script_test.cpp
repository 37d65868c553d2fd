// Allocation scripts: every op, names used again, and all errors of a file at once.
#include "recordings/scripts/allocation_script.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using Kind = ClientAction::Kind;

ClientProgram parse(const std::string& text) { return parse_allocation_script(text, "x.csv"); }

std::vector<std::string> problems_of(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    std::vector<std::string> lines;
    for (const Problem& problem : error.problems()) lines.push_back(problem.where + " " + problem.what);
    return lines;
  }
  return {};
}

TEST(AllocationScript, ReadsEveryOp) {
  const ClientProgram program = parse(
      "op,id,bytes,stream,pool,text\n"
      "alloc,a,20MiB\n"
      "alloc,7,512,0x10\n"
      "record_stream,a,,7\n"
      "free,a\n"
      "sync\n"
      "\n"
      "# a comment, with commas\n"
      "settings,,,,,\"max_split_size_mb:128,garbage_collection_threshold:0.8\"\n"
      "pool_new,,,,p,no_split\n"
      "alloc,a,1GiB,,p\n"
      "capture_begin,,,9,g\n"
      "alloc,c,100,9\n"
      "alloc,d,100,,g\n"
      "capture_end\n"
      "pool_del,,,,g\n"
      "empty_cache\n"
      "reset_peak\n"
      "mark,,,,,step 1\n");

  EXPECT_THAT(program.texts, ElementsAre("max_split_size_mb:128,garbage_collection_threshold:0.8", "step 1"));
  EXPECT_EQ(program.blocks, 5U);
  EXPECT_EQ(program.pools, 2U);
  const auto is = [](Kind kind, std::uint32_t line, ClientAction action = {}) {
    action.kind = kind;
    action.source = line;
    return action;
  };
  EXPECT_THAT(program.actions, ElementsAre(is(Kind::alloc, 2, {.bytes = 20_MiB}),                         //
                                           is(Kind::alloc, 3, {.bytes = 512, .stream = 16, .block = 1}),  //
                                           is(Kind::record_stream, 4, {.stream = 7}),                     //
                                           is(Kind::free, 5),                                             //
                                           is(Kind::sync, 6),                                             //
                                           is(Kind::settings, 9, {.detail = 0}),                          //
                                           is(Kind::pool_new, 10, {.pool = 1, .detail = 2}),              //
                                           is(Kind::alloc, 11, {.bytes = 1_GiB, .block = 2, .pool = 1}),  //
                                           is(Kind::capture_begin, 12, {.stream = 9, .pool = 2}),         //
                                           is(Kind::alloc, 13, {.bytes = 100, .stream = 9, .block = 3}),  //
                                           is(Kind::alloc, 14, {.bytes = 100, .stream = 9, .block = 4}),  //
                                           is(Kind::capture_end, 15, {.stream = 9, .pool = 2}),           //
                                           is(Kind::pool_del, 16, {.pool = 2}),                           //
                                           is(Kind::empty_cache, 17),                                     //
                                           is(Kind::reset_peak, 18),                                      //
                                           is(Kind::mark, 19, {.detail = 1})));
}

TEST(AllocationScript, HeaderNamesTheColumnsThatAreUsed) {
  const ClientProgram program = parse("\xEF\xBB\xBFop,bytes,id\r\nalloc,1.5GiB,a\r\nfree,,a\r\n");
  ASSERT_THAT(program.actions, SizeIs(2));
  EXPECT_EQ(program.actions[0].bytes, 1536_MiB);
}

TEST(AllocationScript, NamesAllErrorsOfAFileWithTheirLines) {
  EXPECT_THAT(
      problems_of("op,id,bytes,stream,pool,text\n"
                  "aloc,a,1\n"
                  "alloc,a\n"
                  "alloc,b,12 gigs\n"
                  "alloc,b,1\n"
                  "alloc,b,1\n"
                  "free,c\n"
                  "free,b,7\n"
                  "alloc,d,1,first\n"
                  "alloc,d,1,,p\n"
                  "pool_new,,,,p,plan\n"
                  "pool_del,,,,p\n"
                  "capture_end\n"
                  "settings,,,,,max_split:7\n"
                  "settings,,,,,max_split_size_mb:64,expandable_segments:True\n"
                  "alloc,e,1,,,\"x\n"),
      ElementsAre("x.csv:2 \"aloc\" is not an op. Did you mean \"alloc\"?",
                  "x.csv:3 alloc needs a value in the column \"bytes\".",
                  "x.csv:4 \"12 gigs\" is not a size. Write a number of bytes up to 2^60, or 512MiB, 24GiB.",
                  "x.csv:6 id \"b\" is live since line 5. Free it first, or use another id.",
                  "x.csv:7 id \"c\" is not live here: no alloc before it, or freed already.",
                  "x.csv:8 free has no use for \"7\" in the column \"bytes\".",
                  "x.csv:9 \"first\" is not a stream. Write its number, 0 for the default stream.",
                  "x.csv:10 pool \"p\" was not made. A pool_new before it makes one.",
                  "x.csv:11 \"plan\" is not a kind of pool. Did you mean \"plain\"?",
                  "x.csv:12 there is no pool \"p\" to delete here.", "x.csv:13 no such capture is open here.",
                  testing::HasSubstr("x.csv:14 allocator settings: max_split: unrecognized key."),
                  "x.csv:15 7 cells, but the header names 6. Put a text that holds commas in double quotes.",
                  "x.csv:16 column 13: a quoted cell never ends."));
}

TEST(AllocationScript, ANamelessOrForeignFileIsAnsweredWithTheHeader) {
  EXPECT_THAT(problems_of(""), ElementsAre("x.csv:1 is empty. An allocation script begins with the header "
                                           "op,id,bytes,stream,pool,text"));
  EXPECT_THAT(problems_of("time,id,bytes\n1,2,3\n"),
              ElementsAre(testing::HasSubstr("x.csv:1 \"time\" is not a column of an allocation script.")));
  EXPECT_THAT(problems_of("id,bytes\n1,2\n"),
              ElementsAre("x.csv:1 the header lacks the column \"op\". It is op,id,bytes,stream,pool,text"));
}

// The two ways into a graph's pool, and what contradicts them.
TEST(AllocationScript, RequestsOfACaptureComeFromItsStream) {
  EXPECT_THAT(problems_of("op,id,bytes,stream,pool,text\n"
                          "capture_begin,,,9,g\n"
                          "alloc,a,1,8,g\n"
                          "capture_begin,,,9\n"
                          "pool_del,,,,g\n"
                          "capture_end,,,9\n"
                          "alloc,b,1,,g\n"),
              ElementsAre("x.csv:3 pool \"g\" is captured on stream 9, not on stream 8.",
                          "x.csv:4 stream 9 is being captured already.",
                          "x.csv:5 pool \"g\" is being captured into; end the capture first.",
                          "x.csv:7 pool \"g\" belongs to a graph whose capture is over."));
}

}  // namespace
}  // namespace vramlab
