#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"
#include "tests/recordings/pickle/pickle_text.hpp"

namespace vramlab {
namespace {

using namespace pickle_text;
using testing::ElementsAre;
using testing::HasSubstr;
using Action = TraceEntry::Action;
using State = SnapshotBlock::State;

std::string field(const char* key, const std::string& value) { return text(key) + value; }
std::string field(const char* key, std::integral auto value) {
  return text(key) + integer(static_cast<std::int64_t>(value));
}

const std::string kTrue = raw("\x88");

TorchSnapshot parse(const std::string& root, int protocol = 4) {
  return parse_torch_snapshot(whole(root, protocol), "x.pickle");
}

std::string refusal(const std::string& root) {
  try {
    parse(root);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string frame(const char* function, int line) {
  return dict(field("name", text(function)) + field("filename", text("train.py")) + field("line", line));
}

const std::string kFrames = list(frame("forward", 12) + frame("main", 40));

std::string segment(const std::string& pool) {
  const std::string blocks =
      list(dict(field("address", 4096) + field("size", 1024) + field("requested_size", 1000) +
                field("state", text("active_allocated")) + field("frames", kFrames)) +
           dict(field("address", 5120) + field("size", 512) + field("requested_size", 8) +
                field("state", text("active_pending_free"))) +
           dict(field("address", 5632) + field("size", 2095616) + field("requested_size", 0) +
                field("state", text("inactive"))));
  return dict(field("device", 1) + field("address", 4096) + field("total_size", 2097152) +
              field("allocated_size", 1024) + field("active_size", 1536) + field("requested_size", 1008) +
              field("stream", 77) + field("segment_type", text("large")) + field("segment_pool_id", pool) +
              field("is_expandable", kTrue) + field("blocks", blocks) + field("newer", text("ignored")));
}

const std::string kPool = raw("K\x03K\x00\x86");

TEST(TorchSnapshot, ReadsSegmentsAndBlocks) {
  const TorchSnapshot snapshot = parse(dict(field("segments", list(segment(kPool)))));
  ASSERT_EQ(snapshot.segments.size(), 1u);
  const SnapshotSegment& segment = snapshot.segments[0];
  EXPECT_EQ(segment.device, 1);
  EXPECT_EQ(segment.address, 4096u);
  EXPECT_EQ(segment.total_size, 2_MiB);
  EXPECT_EQ(segment.allocated_size, 1024u);
  EXPECT_EQ(segment.active_size, 1536u);
  EXPECT_EQ(segment.requested_size, 1008u);
  EXPECT_EQ(segment.stream, 77u);
  EXPECT_TRUE(segment.large);
  EXPECT_TRUE(segment.expandable);
  EXPECT_EQ(segment.pool, (SnapshotPool{3, 0}));
  ASSERT_EQ(segment.blocks.size(), 3u);
  EXPECT_EQ(segment.blocks[0].requested, 1000u);
  EXPECT_EQ(segment.blocks[0].state, State::active_allocated);
  EXPECT_EQ(segment.blocks[1].address, 5120u);
  EXPECT_EQ(segment.blocks[1].state, State::active_pending_free);
  EXPECT_EQ(segment.blocks[2].size, 2095616u);
  EXPECT_EQ(segment.blocks[2].state, State::inactive);
}

TEST(TorchSnapshot, APoolIdMayBeATupleOrAList) {
  for (const std::string& pool : {kPool, list(raw("K\x03K\x00"))}) {
    EXPECT_EQ(parse(dict(field("segments", list(segment(pool))))).segments[0].pool, (SnapshotPool{3, 0}));
  }
  EXPECT_EQ(refusal(dict(field("segments", list(segment(list(raw("K\x03"))))))),
            "x.pickle: /segments/0/segment_pool_id: is not a pair of numbers.");
}

TEST(TorchSnapshot, ReadsEveryActionOfAHistory) {
  const std::vector<std::pair<const char*, Action>> actions{
      {"alloc", Action::alloc},
      {"free_requested", Action::free_requested},
      {"free_completed", Action::free_completed},
      {"segment_alloc", Action::segment_alloc},
      {"segment_free", Action::segment_free},
      {"segment_map", Action::segment_map},
      {"segment_unmap", Action::segment_unmap},
      {"snapshot", Action::snapshot},
      {"annotate", Action::other},
  };
  std::string entries;
  for (const auto& [name, action] : actions) {
    entries += dict(field("action", text(name)) + field("addr", 0x7f9615a00000) + field("size", 512) +
                    field("stream", 7) + field("time_us", 1795816316882962));
  }
  entries += dict(field("action", text("oom")) + field("device_free", 123) + field("size", 1024) +
                  field("stream", 0));
  const TorchSnapshot snapshot = parse(dict(field("device_traces", list("]" + list(entries)))));
  ASSERT_EQ(snapshot.traces.size(), 2u);  // device 0 has no history
  EXPECT_TRUE(snapshot.traces[0].empty());
  const std::vector<TraceEntry>& trace = snapshot.traces[1];
  ASSERT_EQ(trace.size(), actions.size() + 1);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    EXPECT_EQ(trace[i].action, actions[i].second) << actions[i].first;
    EXPECT_EQ(trace[i].address, 0x7f9615a00000u);
    EXPECT_EQ(trace[i].size, 512u);
    EXPECT_EQ(trace[i].stream, 7u);
    EXPECT_EQ(trace[i].time_us, 1795816316882962);
    EXPECT_EQ(trace[i].pool, -1);
  }
  EXPECT_EQ(trace.back().action, Action::oom);
  EXPECT_EQ(trace.back().address, 123u);
}

// R11.3: files after 2.11 name the pool of each entry.
TEST(TorchSnapshot, ReadsThePoolOfAnEntry) {
  const std::string entries =
      list(dict(field("action", text("alloc")) + field("pool_id", kPool)) +
           dict(field("action", text("alloc")) + field("pool_id", raw("K\x00K\x00\x86"))));
  const TorchSnapshot snapshot = parse(dict(field("device_traces", list(entries))));
  EXPECT_EQ(snapshot.pools.at(static_cast<std::size_t>(snapshot.traces[0][0].pool)), (SnapshotPool{3, 0}));
  EXPECT_EQ(snapshot.traces[0][1].pool, 0);
}

TEST(TorchSnapshot, EqualStacksBecomeOne) {
  const std::string entries = list(dict(field("action", text("alloc")) + field("frames", kFrames)) +
                                   dict(field("action", text("alloc")) + field("frames", kFrames)) +
                                   dict(field("action", text("alloc")) + field("frames", "]")) +
                                   dict(field("action", text("alloc"))));
  const TorchSnapshot snapshot = parse(dict(field("device_traces", list(entries))));
  const std::vector<TraceEntry>& trace = snapshot.traces[0];
  EXPECT_EQ(trace[0].stack, 1u);
  EXPECT_EQ(trace[1].stack, 1u);
  EXPECT_EQ(trace[2].stack, 0u);
  EXPECT_EQ(trace[3].stack, 0u);
  ASSERT_EQ(snapshot.stacks.size(), 2u);
  ASSERT_EQ(snapshot.stacks[1].size(), 2u);
  EXPECT_EQ(snapshot.frames.at(snapshot.stacks[1][0]), (StackFrame{"forward", "train.py", 12}));
  EXPECT_EQ(snapshot.frames.at(snapshot.stacks[1][1]), (StackFrame{"main", "train.py", 40}));

  const std::string data = whole(dict(field("device_traces", list(entries))));
  EXPECT_TRUE(parse_torch_snapshot(data, "x", {.stacks = false}).frames.empty());
}

// R11.2: torch 2.0 and older.
TEST(TorchSnapshot, ReadsBlocksWithoutAddresses) {
  const std::string history =
      list(dict(field("real_size", 1000) + field("frames", kFrames)) + dict(field("real_size", 7)));
  const std::string blocks =
      list(dict(field("size", 1024) + field("state", text("active_allocated")) + field("history", history)) +
           dict(field("size", 512) + field("state", text("inactive"))));
  const TorchSnapshot snapshot =
      parse(list(dict(field("address", 4096) + field("total_size", 1536) + field("blocks", blocks))), 2);
  const std::vector<SnapshotBlock>& read = snapshot.segments.at(0).blocks;
  EXPECT_EQ(read[0].address, 4096u);
  EXPECT_EQ(read[0].requested, 1000u);
  EXPECT_EQ(read[0].stack, 1u);
  EXPECT_EQ(read[1].address, 5120u);
}

TEST(TorchSnapshot, SettingsAreThoseOfTheStringAndWhatTheFileSaysItself) {
  const std::string divisions = dict(field("1", 2) + field("1024", 4));
  const TorchSnapshot snapshot = parse(dict(
      field("segments", "]") +
      field("allocator_settings",
            dict(field("PYTORCH_CUDA_ALLOC_CONF", text("max_split_size_mb:64,max_non_split_rounding_mb:32")) +
                 field("max_split_size", 128 << 20) +
                 field("garbage_collection_threshold", raw("G\x3f\xe8\x00\x00\x00\x00\x00\x00")) +
                 field("expandable_segments", kTrue) + field("roundup_power2_divisions", divisions)))));
  const AllocatorSettings settings = allocator_settings_of(snapshot);
  EXPECT_EQ(settings.max_split_size, 128_MiB);  // changed after the string was read
  EXPECT_EQ(settings.max_non_split_rounding, 32_MiB);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.75);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.roundup_power2_divisions[0], 2u);
  EXPECT_EQ(settings.roundup_power2_divisions[1], 0u);
  EXPECT_EQ(settings.roundup_power2_divisions[10], 4u);
}

// A recorded string was accepted by the PyTorch that wrote it: what is not understood is said, and the rest
// counts.
TEST(TorchSnapshot, SettingsThatCannotBeAreSaidAndPassedOver) {
  std::vector<std::string> warnings;
  const auto with = [&](const std::string& setting) {
    warnings.clear();
    const auto snapshot = parse(dict(field("segments", "]") + field("allocator_settings", dict(setting))));
    return allocator_settings_of(snapshot, &warnings);
  };
  const std::string not_a_number = raw("G\x7f\xf8\x00\x00\x00\x00\x00\x00");
  EXPECT_EQ(with(field("garbage_collection_threshold", not_a_number)).garbage_collection_threshold, 0);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("/garbage_collection_threshold: is not from 0 to 1")));
  EXPECT_EQ(with(field("roundup_power2_divisions", dict(field("1", 3)))).roundup_power2_divisions[0], 0u);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("3 is not a power of two")));
  const std::string conf =
      "no_such_key:[1,2],max_split_size_mb:64,garbage_collection_threshold:7,expandable_segments:True";
  const AllocatorSettings settings = with(field("PYTORCH_CUDA_ALLOC_CONF", text(conf)));
  EXPECT_EQ(settings.max_split_size, 64_MiB);
  EXPECT_EQ(settings.garbage_collection_threshold, 0);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.text, conf);
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("/allocator_settings/PYTORCH_CUDA_ALLOC_CONF: no_such_key: unrecognized"),
                          HasSubstr("garbage_collection_threshold: \"7\" is out of range")));
  EXPECT_EQ(with(field("max_split_size", -1)).max_split_size, kUnlimited);
  EXPECT_EQ(allocator_settings_of(parse(dict(field("segments", "]")))), AllocatorSettings{});
}

// No file says which PyTorch wrote it. throw_on_cudamalloc_oom and pool_id came after 2.11.
TEST(TorchSnapshot, TheVersionIsReadOffKeysAndFieldsOrGiven) {
  const auto version = [](const TorchSnapshot& snapshot) {
    return to_text(writer_version(snapshot).torch) + ' ' + writer_version(snapshot).from;
  };
  EXPECT_EQ(version(parse(dict(field("segments", "]")))), "2.11 assumed");
  const std::string newer =
      dict(field("segments", "]") +
           field("allocator_settings",
                 dict(field("PYTORCH_CUDA_ALLOC_CONF", text("throw_on_cudamalloc_oom:True")))));
  EXPECT_EQ(version(parse(newer)), "2.12 inferred");
  EXPECT_TRUE(allocator_settings_of(parse(newer)).throw_on_cudamalloc_oom);
  const std::string entry = dict(field("action", text("alloc")) + field("pool_id", kPool));
  EXPECT_EQ(version(parse(dict(field("device_traces", list(list(entry)))))), "2.12 inferred");
  TorchSnapshot given = parse(newer);
  given.torch = TorchVersion{2, 6};
  EXPECT_EQ(version(given), "2.6 given");
  EXPECT_FALSE(allocator_settings_of(given).throw_on_cudamalloc_oom);  // which 2.6 does not know
}

// pytorch writes line -1 as an unsigned number.
TEST(TorchSnapshot, WhatNoReplayNeedsIsLeftOutWithAWarning) {
  const std::string minus_one = raw("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00");
  const std::string too_large = raw("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01");
  const auto with_frame = [](const std::string& line) {
    const std::string frames = list(dict(field("name", text("f")) + field("filename", text("a.py")) + line));
    return parse(dict(
        field("device_traces", list(list(dict(field("action", text("alloc")) + field("size", 512) +
                                              field("time_us", text("now")) + field("frames", frames)))))));
  };
  EXPECT_EQ(with_frame(field("line", minus_one)).frames.at(0).line, -1);
  const TorchSnapshot snapshot = with_frame(field("line", too_large));
  EXPECT_EQ(snapshot.frames.at(0).function, "f");
  EXPECT_EQ(snapshot.traces.at(0).at(0).size, 512u);
  EXPECT_THAT(
      snapshot.warnings,
      ElementsAre("x.pickle: /device_traces/0/0/frames/0/line: does not fit 64 bits. It is left out, and "
                  "the replay goes on without it.",
                  "x.pickle: /device_traces/0/0/time_us: is not a whole number. It is left out, and the "
                  "replay goes on without it."));
}

// Marks are placed by times: a bad one is that of the entry before.
TEST(TorchSnapshot, ABadTimeIsThatOfTheEntryBefore) {
  const auto entry = [](const std::string& time) {
    return dict(field("action", text("alloc")) + field("time_us", time));
  };
  const TorchSnapshot snapshot = parse(
      dict(field("device_traces", list(list(entry(integer(70)) + entry(text("x")) + entry(integer(90)))))));
  EXPECT_EQ(snapshot.traces.at(0).at(1).time_us, 70);
}

TEST(TorchSnapshot, EntriesOfUnknownActionsAreCounted) {
  const auto entry = [](const char* action) { return dict(field("action", text(action))); };
  const TorchSnapshot snapshot =
      parse(dict(field("device_traces", list(list(entry("skipped") + entry("alloc") + entry("skipped"))))));
  EXPECT_THAT(snapshot.warnings,
              ElementsAre("x.pickle: 2 entries \"skipped\" of the history are of an action that "
                          "is not known here. They are skipped."));
}

TEST(TorchSnapshot, ReadsTheProgramsOwnNotes) {
  const auto entry = [](const char* context, const char* metadata) {
    return dict(field("action", text("alloc")) + field("compile_context", text(context)) +
                field("user_metadata", text(metadata)));
  };
  const std::string annotation = dict(field("name", text("step 1")) + field("stage", text("END")) +
                                      field("device", 0) + field("time_us", 12));
  const TorchSnapshot snapshot = parse(
      dict(field("device_traces", list(list(entry("N/A", "") + entry("0/0", "") + entry("0/0", "warm up")))) +
           field("external_annotations", list(annotation))));
  const std::vector<TraceEntry>& trace = snapshot.traces.at(0);
  EXPECT_EQ(snapshot.labels.at(trace[0].label), "");
  EXPECT_EQ(snapshot.labels.at(trace[1].label), "torch.compile 0/0");
  EXPECT_EQ(snapshot.labels.at(trace[2].label), "warm up");
  ASSERT_EQ(snapshot.annotations.size(), 1u);
  EXPECT_EQ(snapshot.annotations[0].name, "step 1");
  EXPECT_FALSE(snapshot.annotations[0].start);
  EXPECT_EQ(snapshot.annotations[0].time_us, 12);
}

// Keys of files after torch 2.11 (PR 182407; MemoryViz.js for trace_alloc_*): from the source, not recorded.
TEST(TorchSnapshot, ReadsPinnedMemoryAndWhetherTheHistoryIsWhole) {
  const std::string blocks = list(dict(field("size", 4096) + field("state", text("active_allocated"))) +
                                  dict(field("size", 1024) + field("state", text("inactive"))));
  const std::string host =
      list(dict(field("total_size", 8192) + field("blocks", blocks)) +
           dict(field("total_size", 100) + field("allocated_size", 60) + field("host_only", text("?"))) +
           dict(field("total_size", text("bad"))));
  const std::string settings =
      dict(field("PYTORCH_ALLOC_CONF", text("max_split_size_mb:64,new_key:1")) +
           field("trace_alloc_overflowed", kTrue) + field("trace_alloc_max_entries", 100));
  const std::string entry =
      dict(field("action", text("alloc")) + field("addr", 4096) + field("size", 512) + field("stream", 0) +
           field("forward_frames", kFrames) + field("frames", kFrames));
  const TorchSnapshot snapshot =
      parse(dict(field("segments", list("")) + field("device_traces", list(list(entry))) +
                 field("allocator_settings", settings) + field("host_segments", host) +
                 field("host_traces", list(list(entry + entry)))));
  ASSERT_TRUE(snapshot.host);
  EXPECT_EQ(snapshot.host->segments, 2u);
  EXPECT_EQ(snapshot.host->bytes, 8292u);
  EXPECT_EQ(snapshot.host->in_use, 4156u);
  EXPECT_EQ(snapshot.host->entries, 2u);
  EXPECT_EQ(snapshot.forward_stacks, 1u);
  EXPECT_EQ(snapshot.settings.trace_overflowed, true);
  EXPECT_EQ(snapshot.settings.trace_max_entries, 100);
  EXPECT_EQ(allocator_settings_of(snapshot).max_split_size, 64_MiB);  // and new_key refuses nothing
  EXPECT_EQ(snapshot.warnings.size(), 1u);
  EXPECT_THAT(
      snapshot_notes(snapshot),
      ElementsAre(HasSubstr("lost its oldest entries: it holds 100 at most"),
                  HasSubstr("Pinned memory of the host: 8.1 KiB in 2 segments"), HasSubstr("forward pass")));
}

TEST(TorchSnapshot, SaysWhatIsWrongAndWhere) {
  const auto in_entry = [](const std::string& fields) {
    return refusal(dict(field("device_traces", list(list(dict(fields))))));
  };
  const std::string other = "is a pickle, but no memory snapshot: it has neither segments nor device_traces.";
  EXPECT_EQ(refusal("N"), "x.pickle: " + other);
  EXPECT_EQ(refusal(dict(field("weights", "]"))), "x.pickle: " + other);
  EXPECT_EQ(refusal(dict(field("segments", "N"))), "x.pickle: /segments: is not a list.");
  EXPECT_EQ(refusal(dict(field("segments", list("N")))), "x.pickle: /segments/0: is not a dict.");
  EXPECT_EQ(in_entry(field("size", 1)), "x.pickle: /device_traces/0/0: has no action.");
  EXPECT_EQ(in_entry(field("action", text("alloc")) + field("size", -1)),
            "x.pickle: /device_traces/0/0/size: -1 is not a number of bytes from 0 to 2^60.");
  EXPECT_EQ(in_entry(field("size", raw("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"))),
            "x.pickle: /device_traces/0/0/size: does not fit 64 bits.");  // 2^64
  EXPECT_EQ(in_entry(field("stream", text("x"))),
            "x.pickle: /device_traces/0/0/stream: is not a whole number.");
  EXPECT_EQ(in_entry(field("action", 3)), "x.pickle: /device_traces/0/0/action: is not text.");
  const auto in_block = [](const std::string& fields) {
    return refusal(dict(field("segments", list(dict(field("blocks", list(dict(fields))))))));
  };
  EXPECT_EQ(in_block(field("state", text("lost"))),
            "x.pickle: /segments/0/blocks/0/state: \"lost\" is not a state of a block.");
}

// One list of a thousand entries in a thousand places: a million entries from a few kilobytes.
TEST(TorchSnapshot, DataThatIsRepeatedTooOftenIsRefused) {
  std::string entries;
  for (int i = 0; i < 1000; ++i) entries += dict(field("action", text("alloc")));
  std::string traces = list(entries) + raw("\x94");
  for (int i = 0; i < 1000; ++i) traces += raw("h\x00");
  EXPECT_THAT(refusal(dict(field("device_traces", list(traces)))),
              HasSubstr("the same data is repeated too often."));
}

}  // namespace
}  // namespace vramlab
