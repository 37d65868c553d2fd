// Snapshots are read as a stream: what is taken out on the way equals what is read at once.
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"
#include "tests/recordings/pickle/pickle_text.hpp"

namespace vramlab {
namespace {

namespace io = boost::iostreams;
using namespace pickle_text;
using testing::HasSubstr;
using Action = TraceEntry::Action;

constexpr std::size_t kEntries = 60'000;  // several pieces of the file, many batches

std::string entry(std::size_t i) {
  return dict(text("action") + text(i % 2 == 0 ? "alloc" : "free_requested") + text("addr") +
              integer(static_cast<std::int64_t>(0x7f0000000000 + 512 * i)) + text("size") +
              integer(static_cast<std::int64_t>(i)) + text("stream") + raw("K\x07") + text("user_metadata") +
              text("step " + std::to_string(i)));
}

/// A history as Python writes it, in batches of a thousand, or as C++ does, in one (R11.9, R11.10).
std::string history(bool one_batch) {
  std::string list = "](";
  for (std::size_t i = 0; i < kEntries; ++i) {
    if (i > 0 && i % 1000 == 0 && !one_batch) list += "e(";
    list += entry(i) + raw("\x94");
  }
  return list + 'e';
}

void expect_history(const std::vector<TraceEntry>& trace) {
  ASSERT_EQ(trace.size(), kEntries);
  for (std::size_t i = 0; i < kEntries; ++i) {
    const TraceEntry& entry = trace[i];
    ASSERT_EQ(entry.address, 0x7f0000000000 + 512 * i);
    ASSERT_EQ(entry.size, i);
    ASSERT_EQ(entry.stream, 7u);
    ASSERT_EQ(entry.action, i % 2 == 0 ? Action::alloc : Action::free_requested);
  }
}

class SnapshotStream : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  template <class... Filters>
  TorchSnapshot read(const std::string& content, const Filters&... filters) {
    const std::filesystem::path file = folder_ / "x.pickle";
    {
      io::filtering_ostream out;
      (out.push(filters), ...);
      std::ofstream sink(file, std::ios::binary);
      out.push(sink);
      out << content;
      out.reset();
    }
    return read_torch_snapshot(file);
  }

  std::string refusal(const std::string& content) {
    try {
      read(content);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("vramlab_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(SnapshotStream, HistoriesOfSeveralDevicesComeWhole) {
  for (const bool one_batch : {false, true}) {
    for (const int protocol : {2, 4}) {
      const std::string content = whole(
          dict(text("device_traces") + list(history(one_batch) + list("") + history(!one_batch))), protocol);
      for (const TorchSnapshot& snapshot : {read(content), parse_torch_snapshot(content, "x")}) {
        ASSERT_EQ(snapshot.traces.size(), 3u);
        expect_history(snapshot.traces[0]);
        EXPECT_TRUE(snapshot.traces[1].empty());
        expect_history(snapshot.traces[2]);
      }
    }
  }
}

// Python writes a list of one element, and a dict of one key, without marks.
TEST_F(SnapshotStream, AWatchHearsEveryEntryOnce) {
  std::vector<std::vector<TraceEntry>> heard(3);
  const auto watch = [&](std::size_t device, const TraceEntry& entry) { heard.at(device).push_back(entry); };
  parse_torch_snapshot(whole(dict(text("device_traces") + list(history(true) + list("") + history(false)))),
                       "x", {.watch = watch});
  expect_history(heard[0]);
  EXPECT_TRUE(heard[1].empty());
  expect_history(heard[2]);
}

TEST_F(SnapshotStream, AListOfOneHistoryComesWhole) {
  const std::string traces = "]" + history(false) + "a";
  expect_history(read(whole("}" + text("device_traces") + traces + "s")).traces.at(0));
  expect_history(
      read(whole(dict(text("segments") + list("") + text("device_traces") + traces))).traces.at(0));
}

TEST_F(SnapshotStream, CompressedFilesAreUnpackedOnTheWay) {
  const std::string content = whole(dict(text("device_traces") + list(history(false))));
  expect_history(read(content, io::gzip_compressor()).traces.at(0));
  expect_history(read(content, io::zstd_compressor()).traces.at(0));
}

// An entry that is used once more while it is still there is one like any other.
TEST_F(SnapshotStream, AnEntryMayBeUsedTwice) {
  const std::string first = entry(0) + raw("\x94");
  const std::string content =
      whole(dict(text("device_traces") + list(list(first + raw("h\x00") + entry(2)))));
  const TorchSnapshot snapshot = read(content);
  ASSERT_EQ(snapshot.traces.at(0).size(), 3u);
  EXPECT_EQ(snapshot.traces[0][1].address, snapshot.traces[0][0].address);
  EXPECT_EQ(snapshot.traces[0][2].size, 2u);
  const std::string later = whole(dict(text("device_traces") + list(list(first) + list(raw("h\x00")))));
  EXPECT_THAT(refusal(later), HasSubstr("memo number 0 is used and was never set."));
}

// Lists elsewhere are not taken, and neither are those at another depth.
TEST_F(SnapshotStream, OnlyTheHistoriesAreTaken) {
  const std::string three = list(entry(0) + entry(1) + entry(2));
  const std::string other = whole(dict(text("host_traces") + list(three) + text("device_traces") + list("")));
  EXPECT_TRUE(read(other).traces.empty());
  EXPECT_THAT(refusal(whole(dict(text("device_traces") + list(list(three))))),
              HasSubstr("/device_traces/0/0: is not a dict."));
}

TEST_F(SnapshotStream, ErrorsNameBytesAndEntriesFarBehindTheBeginning) {
  const std::string good = whole(dict(text("device_traces") + list(history(false))));
  std::string bad = good;
  bad[bad.size() - 4] = 'c';
  EXPECT_THAT(refusal(bad),
              HasSubstr("byte " + std::to_string(bad.size() - 4) + ": opcode GLOBAL would import code"));
  EXPECT_THAT(refusal(good.substr(0, good.size() - 1)), HasSubstr("the file ends too early: 1 bytes"));
  std::string frame = good;
  frame.insert(2, raw("\x95") + number(good.size(), 8));
  EXPECT_THAT(refusal(frame), HasSubstr("the file ends too early: "));
  frame = good;
  frame.insert(2, raw("\x95") + number(good.size() - 2, 8));
  EXPECT_EQ(refusal(frame), "accepted");
  const std::string wrong =
      whole(dict(text("device_traces") + list(history(false).substr(0, history(false).size() - 1) +
                                              dict(text("action") + raw("K\x01")) + 'e')));
  EXPECT_THAT(refusal(wrong), HasSubstr("x.pickle: /device_traces/0/60000/action: is not text."));
}

}  // namespace
}  // namespace vramlab
