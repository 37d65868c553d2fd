#include "sim/memory/caching/allocator_settings.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

using Divisions = std::array<std::uint64_t, 16>;

std::string refusal(const std::string& conf) {
  try {
    parse_allocator_settings(conf);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AllocatorSettings, OfAnEmptyStringAreTheDefaults) {
  const AllocatorSettings settings = parse_allocator_settings("");
  EXPECT_EQ(settings, AllocatorSettings{});
  EXPECT_EQ(settings.max_split_size, kUnlimited);
  EXPECT_EQ(settings.max_non_split_rounding, 20_MiB);
  EXPECT_EQ(settings.large_segment_size, 20_MiB);
  EXPECT_FALSE(settings.expandable_segments);
}

TEST(AllocatorSettings, ReadEveryKey) {
  const AllocatorSettings s = parse_allocator_settings(
      "backend:native,max_split_size_mb:128,max_non_split_rounding_mb:64,roundup_power2_divisions:8,"
      "garbage_collection_threshold:0.8,expandable_segments:True,per_process_memory_fraction:0.5,"
      "release_lock_on_cudamalloc:True,graph_capture_record_stream_reuse:True,"
      "pinned_use_cuda_host_register:True,pinned_num_register_threads:8,pinned_use_background_threads:True,"
      "pinned_reserve_segment_size_mb:4,pinned_max_round_size_mb:2,pinned_max_cached_size_mb:3,"
      "throw_on_cudamalloc_oom:True",
      {.torch = {2, 12}});
  EXPECT_EQ(s.backend, AllocatorBackend::native);
  EXPECT_EQ(s.max_split_size, 128_MiB);
  EXPECT_EQ(s.max_non_split_rounding, 64_MiB);
  EXPECT_EQ(s.roundup_power2_divisions[0], 8u);
  EXPECT_EQ(s.roundup_power2_divisions[15], 8u);
  EXPECT_EQ(s.garbage_collection_threshold, 0.8);
  EXPECT_TRUE(s.expandable_segments);
  EXPECT_EQ(s.per_process_memory_fraction, 0.5);
  EXPECT_TRUE(s.release_lock_on_cudamalloc);
  EXPECT_TRUE(s.graph_capture_record_stream_reuse);
  EXPECT_TRUE(s.pinned_use_cuda_host_register);
  EXPECT_EQ(s.pinned_num_register_threads, 8u);
  EXPECT_TRUE(s.pinned_use_background_threads);
  EXPECT_EQ(s.pinned_reserve_segment_size_mb, 4u);
  EXPECT_EQ(s.pinned_max_round_size_mb, 2u);
  EXPECT_EQ(s.pinned_max_cached_size_mb, 3u);
  EXPECT_TRUE(s.throw_on_cudamalloc_oom);
  EXPECT_THAT(s.text, HasSubstr("max_split_size_mb:128"));
  EXPECT_EQ(parse_allocator_settings("backend:cudaMallocAsync").backend, AllocatorBackend::cuda_malloc_async);
}

// R9.3
TEST(AllocatorSettings, IgnoreWhiteSpaceAndATrailingComma) {
  EXPECT_EQ(parse_allocator_settings(" max_split_size_mb : 64 ,\n").max_split_size, 64_MiB);
  EXPECT_EQ(parse_allocator_settings("max_split _size_mb:6 4").max_split_size, 64_MiB);
}

// R9.3: since torch 2.9 a wrong token in the place of a separator is skipped.
TEST(AllocatorSettings, DoNotEnforceSeparators) {
  const AllocatorSettings s = parse_allocator_settings("max_split_size_mb,64:expandable_segments[True");
  EXPECT_EQ(s.max_split_size, 64_MiB);
  EXPECT_TRUE(s.expandable_segments);
}

// R9.3: the rules of stoull and stod.
TEST(AllocatorSettings, ReadNumbersAsCppDoes) {
  EXPECT_EQ(parse_allocator_settings("max_split_size_mb:64MB").max_split_size, 64_MiB);
  EXPECT_EQ(parse_allocator_settings("max_split_size_mb:+64.9").max_split_size, 64_MiB);
  EXPECT_EQ(parse_allocator_settings("garbage_collection_threshold:0.5x").garbage_collection_threshold, 0.5);
  // A negative number wraps around, and what is too large is clamped (R9.5).
  EXPECT_EQ(parse_allocator_settings("max_split_size_mb:-1").max_split_size, kUnlimited / 1_MiB * 1_MiB);
  EXPECT_THAT(refusal("max_split_size_mb:abc"), HasSubstr("\"abc\" is not a whole number"));
  EXPECT_THAT(refusal("garbage_collection_threshold:high"), HasSubstr("\"high\" is not a number"));
  EXPECT_THAT(refusal("max_split_size_mb:99999999999999999999"), HasSubstr("does not fit 64 bits"));
}

// K1-04, R9.5: refusals name the key and what is allowed.
TEST(AllocatorSettings, RefuseWhatPyTorchRefuses) {
  EXPECT_THAT(refusal("foo:1,bar:2"), HasSubstr("foo: unrecognized key"));
  EXPECT_THAT(refusal("expandable_segments=True"),
              HasSubstr("unrecognized key. Did you mean \"expandable_segments\"?"));
  EXPECT_THAT(
      refusal("garbage_collection_threshold:1.2"),
      HasSubstr(
          "garbage_collection_threshold: \"1.2\" is out of range. Allowed: more than 0 and less than 1"));
  EXPECT_THAT(refusal("garbage_collection_threshold:0"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("garbage_collection_threshold:nan"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("max_split_size_mb:2"), HasSubstr("max_split_size_mb: 2 is too small. Allowed: 20"));
  EXPECT_THAT(refusal("max_split_size_mb:19"), HasSubstr("too small"));
  EXPECT_THAT(refusal("max_non_split_rounding_mb:19"), HasSubstr("Allowed: 20"));
  EXPECT_THAT(refusal("large_segment_size_mb:10"), HasSubstr("Allowed: more than 10"));
  EXPECT_THAT(refusal("expandable_segments:true"), HasSubstr("Write True or False"));
  EXPECT_THAT(refusal("release_lock_on_cudamalloc:1"), HasSubstr("Write True or False"));
  EXPECT_THAT(refusal("pinned_num_register_threads:1024"), HasSubstr("1 to 128"));
  EXPECT_THAT(refusal("pinned_num_register_threads:3"), HasSubstr("power of two"));
  EXPECT_THAT(refusal("pinned_reserve_segment_size_mb:0"), HasSubstr("1 (MB) or more"));
  EXPECT_THAT(refusal("per_process_memory_fraction:-0.1"), HasSubstr("Allowed: 0 to 1"));
  EXPECT_THAT(refusal("per_process_memory_fraction:1.1"), HasSubstr("Allowed: 0 to 1"));
  EXPECT_THAT(refusal("roundup_power2_divisions:3"), HasSubstr("power of two"));
  EXPECT_THAT(refusal("roundup_power2_divisions:0"), HasSubstr("power of two"));
  EXPECT_THAT(refusal("roundup_power2_divisions:[100:2]"), HasSubstr("size \"100\""));
  EXPECT_THAT(refusal("roundup_power2_divisions:[128:3]"), HasSubstr("0 or a power of two"));
  EXPECT_THAT(refusal("backend:other"), HasSubstr("native or cudaMallocAsync"));
  EXPECT_THAT(refusal("max_split_size_mb:"), HasSubstr("ends before the value"));
  EXPECT_THAT(refusal("max_split_size_mb"), HasSubstr("ends before the value"));
  EXPECT_THAT(refusal("roundup_power2_divisions:[256:1"), HasSubstr("ends before the value"));
}

// R5.10: physical memory comes in 2 MiB. Expandable segments are sticky (R9.4).
TEST(AllocatorSettings, RefuseExpandablePagesThatAreOdd) {
  EXPECT_THAT(refusal("large_segment_size_mb:13,expandable_segments:True"),
              HasSubstr("large_segment_size_mb: 13 is odd"));
  EXPECT_EQ(refusal("large_segment_size_mb:13"), "accepted");
  EXPECT_EQ(refusal("large_segment_size_mb:14,expandable_segments:True"), "accepted");
  EXPECT_THROW(parse_allocator_settings("large_segment_size_mb:13",
                                        parse_allocator_settings("expandable_segments:True")),
               InputError);
}

// Sums of such sizes would not fit 64 bits.
TEST(AllocatorSettings, RefuseSegmentsLargerThanAnyCard) {
  EXPECT_THAT(refusal("large_segment_size_mb:1048577"), HasSubstr("Allowed: up to 1048576 (1 TiB)"));
  EXPECT_EQ(refusal("large_segment_size_mb:1048576"), "accepted");
}

// R9.3: the parser before 2.9 demanded the separators, those of the list, too.
TEST(AllocatorSettings, OlderParsersDemandSeparatorsInTheList) {
  AllocatorSettings old;
  old.torch = {2, 8};
  EXPECT_THROW(parse_allocator_settings("roundup_power2_divisions:[256,1,512,2]", old), InputError);
  EXPECT_THROW(parse_allocator_settings("roundup_power2_divisions:[256:1:512:2]", old), InputError);
  EXPECT_EQ(parse_allocator_settings("roundup_power2_divisions:[256:1,512:2]", old).roundup_power2_divisions,
            parse_allocator_settings("roundup_power2_divisions:[256,1:512,2]").roundup_power2_divisions);
  try {
    parse_allocator_settings("large_segment_size_mb:5", old);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("torch 2.8 does not know this key"));
  }
}

// K1-04
TEST(AllocatorSettings, AcceptTheEndsOfTheRanges) {
  for (const char* fraction : {"0.0", "0.5", "1.0"}) {
    EXPECT_EQ(refusal(std::string("per_process_memory_fraction:") + fraction), "accepted");
  }
  EXPECT_EQ(refusal("max_split_size_mb:20"), "accepted");
  EXPECT_EQ(refusal("pinned_num_register_threads:128"), "accepted");
  EXPECT_EQ(refusal("large_segment_size_mb:11"), "accepted");
}

// R1.5
TEST(AllocatorSettings, FillTheRoundupVector) {
  const auto divisions = [](const char* list) {
    return parse_allocator_settings(std::string("roundup_power2_divisions:") + list).roundup_power2_divisions;
  };
  EXPECT_EQ(divisions("[256:1,512:2,1024:4,>:8]"),
            (Divisions{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8}));
  // Between two keys nothing is filled.
  EXPECT_EQ(divisions("[64:8,256:4,1024:4,>:1]"),
            (Divisions{8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 4, 1, 1, 1, 1, 1}));
  // Without a numeric key the first entry stays off.
  EXPECT_EQ(divisions("[>:4]"), (Divisions{0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(divisions("[1:2]"), (Divisions{2}));
  // Keys above 32768 share the last entry.
  EXPECT_EQ(divisions("[65536:2]"), (Divisions{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(divisions("[]"), Divisions{});
}

// R9.4
TEST(AllocatorSettings, ResetSomeKeysAndKeepOthers) {
  const AllocatorSettings first = parse_allocator_settings(
      "max_split_size_mb:128,roundup_power2_divisions:4,garbage_collection_threshold:0.6,"
      "max_non_split_rounding_mb:64,expandable_segments:True,per_process_memory_fraction:0.5,"
      "large_segment_size_mb:32,pinned_num_register_threads:4");
  for (const char* next : {"", "release_lock_on_cudamalloc:True"}) {
    const AllocatorSettings second = parse_allocator_settings(next, first);
    EXPECT_EQ(second.max_split_size, kUnlimited);
    EXPECT_EQ(second.roundup_power2_divisions, Divisions{});
    EXPECT_EQ(second.garbage_collection_threshold, 0);
    EXPECT_EQ(second.max_non_split_rounding, 32_MiB);  // follows the large segment size
    EXPECT_TRUE(second.expandable_segments);
    EXPECT_EQ(second.per_process_memory_fraction, 0.5);
    EXPECT_EQ(second.large_segment_size, 32_MiB);
    EXPECT_EQ(second.pinned_num_register_threads, 4u);
  }
}

// R9.5: legal, because the large segment size is read first.
TEST(AllocatorSettings, ReadTheLargeSegmentSizeFirst) {
  const AllocatorSettings s = parse_allocator_settings("max_split_size_mb:16,large_segment_size_mb:12");
  EXPECT_EQ(s.max_split_size, 16_MiB);
  EXPECT_EQ(s.large_segment_size, 12_MiB);
  EXPECT_EQ(s.max_non_split_rounding, 12_MiB);
  EXPECT_THAT(refusal("max_split_size_mb:48,large_segment_size_mb:64"), HasSubstr("Allowed: 64"));
}

}  // namespace
}  // namespace vramlab
