// Logs of several ranks, printed counters in every form, and nvidia-smi's table.
#include "recordings/logs/oom_log.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::string failure(const std::string& tried, int gpu) {
  return "CUDA out of memory. Tried to allocate " + tried + ". GPU " + std::to_string(gpu) +
         " has a total capacity of 79.15 GiB of which 10.00 MiB is free. Of the allocated memory 70.00 GiB "
         "is allocated "
         "by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";
}

std::vector<std::string> writers(const OomLog& log) {
  std::vector<std::string> names;
  for (const LoggedOom& one : log.failures) names.push_back(one.writer + ' ' + one.message.tried->text);
  return names;
}

TEST(OomLog, RanksAreToldApartAndTheFirstInTheTextComesFirst) {
  const OomLog log = read_oom_log(
      "[rank2]: Traceback (most recent call last):\n[rank0]: Traceback\n[rank2]: " + failure("64.00 MiB", 2) +
      "\n[rank0]: " + failure("20.00 MiB", 0) + "\n");
  EXPECT_THAT(writers(log), ElementsAre("rank 2 64.00 MiB", "rank 0 20.00 MiB"));
}

// Two messages wrapped and interleaved line by line.
TEST(OomLog, InterleavedLinesOfRanksAreJoined) {
  const OomLog log = read_oom_log(
      "[rank0]: CUDA out of memory. Tried to allocate\n[rank1]: CUDA out of memory. Tried to allocate "
      "2.00\n[rank0]: "
      "20.00 MiB. GPU 0 has a total capacity of 79.15 GiB\n[rank1]: GiB. GPU 1 has a total capacity of 39.50 "
      "GiB\n");
  EXPECT_THAT(writers(log), ElementsAre("rank 0 20.00 MiB", "rank 1 2.00 GiB"));
  EXPECT_EQ(log.failures.at(1).message.total->text, "39.50 GiB");
}

TEST(OomLog, LaunchersWriteRanksInTheirOwnWays) {
  const std::string text = failure("64.00 MiB", 0);
  EXPECT_EQ(read_oom_log("[default3]:" + text).failures.at(0).writer, "rank 3");
  EXPECT_EQ(read_oom_log("[1,4]<stderr>:" + text).failures.at(0).writer, "rank 4");
  EXPECT_EQ(read_oom_log("5: " + text).failures.at(0).writer, "rank 5");
  EXPECT_EQ(read_oom_log("(RayTrainWorker pid=71, ip=10.0.0.3) " + text).failures.at(0).writer,
            "RayTrainWorker pid=71");
}

// As mails and issues quote, wrapped within the message.
TEST(OomLog, QuotedLinesAreRead) {
  const OomLog log = read_oom_log(
      "> CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total\n> capacity of 79.15 GiB of "
      "which 10.00\n> MiB is free.\n");
  EXPECT_EQ(log.failures.at(0).message.total->text, "79.15 GiB");
  EXPECT_EQ(log.failures.at(0).message.free->text, "10.00 MiB");
}

TEST(OomLog, TheVersionIsRead) {
  EXPECT_EQ(read_oom_log("PyTorch version: 2.3.1+cu121").torch_version, "2.3");
  EXPECT_EQ(read_oom_log("allocated by PyTorch, and; torch==2.10.0").torch_version, "2.10");
  EXPECT_EQ(read_oom_log("torch version 2").torch_version, "");
}

TEST(OomLog, WhatIsPrintedTwiceIsOneFailure) {
  const OomLog log = read_oom_log(failure("64.00 MiB", 0) + "\nERROR | " + failure("64.00 MiB", 0));
  ASSERT_THAT(log.failures, SizeIs(1));
  EXPECT_EQ(log.failures[0].times, 2u);
}

TEST(OomLog, NvidiaSmiBesideAMessageIsRead) {
  const OomLog log =
      read_oom_log(failure("64.00 MiB", 0) +
                   "\n| 30%   40C    P2    60W / 300W |  77484MiB / 81559MiB |      0%      Default |\n"
                   "|    0   N/A  N/A      1183      C   python3                         75660MiB |\n"
                   "|    0      1500      C   /usr/bin/python                1200MiB |\n"
                   "|    1   N/A  N/A      1600    C+G   explorer.exe                      N/A      |\n");
  ASSERT_THAT(log.smi_processes, SizeIs(3));
  EXPECT_EQ(log.smi_processes[0].pid, 1183u);
  EXPECT_EQ(log.smi_processes[0].bytes, 75660_MiB);
  EXPECT_EQ(log.smi_processes[1].name, "/usr/bin/python");
  EXPECT_FALSE(log.smi_processes[2].bytes);
  ASSERT_THAT(log.smi_cards, SizeIs(1));
  EXPECT_EQ(log.smi_cards[0].total, 81559_MiB);
  EXPECT_THAT(log.failures, SizeIs(1));
}

TEST(OomLog, SettingsInForceAreNotThoseThatAMessageAdvises) {
  EXPECT_THAT(
      read_oom_log("try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid it").settings,
      SizeIs(0));
  EXPECT_THAT(
      read_oom_log("os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'max_split_size_mb:64,expandable_segments:True'")
          .settings,
      ElementsAre("expandable_segments:True", "max_split_size_mb:64"));
}

TEST(MemoryCountersText, EveryFormIsRead) {
  for (const char* text :
       {"{'allocated_bytes.all.current': 100, 'reserved_bytes.all.current': 300}",
        "OrderedDict([('allocated_bytes.all.current', 100), ('reserved_bytes.all.current', 300)])",
        "{\"allocated_bytes.all.current\": 100,\n  \"reserved_bytes.all.current\": 300}",
        "allocated_bytes.all.current: 100\nreserved_bytes.all.current: 300\n",
        "stats: {'allocated_bytes': {'all': {'current': 100, 'peak': 7}, 'small_pool': {'current': 1}},\n"
        " 'reserved_bytes': {'all': {'current': 300}}}"}) {
    const auto all = parse_memory_counters(text);
    ASSERT_THAT(all, SizeIs(1)) << text;
    EXPECT_EQ(all[0].find("allocated_bytes.all.current")->bytes, 100u) << text;
    EXPECT_EQ(all[0].find("reserved_bytes.all.current")->bytes, 300u) << text;
  }
}

// Numbers of the table are cut: 1 MiB stands for up to a byte less than 2 MiB; MB means MiB.
TEST(MemoryCountersText, SummariesOfSeveralDevicesAreToldApart) {
  const auto all = parse_memory_counters(
      "| PyTorch CUDA memory summary, device ID 0 |\n| CUDA OOMs: 2 | cudaMalloc retries: 6 |\n"
      "| Allocated memory      |   1 MiB |  2 MiB |  3 MiB |  2 MiB |\n"
      "| PyTorch CUDA memory summary, device ID 3 |\n"
      "| Allocated memory      |   26377 MB |   26988 MB |  767743 GB |  767717 GB |\n"
      "| GPU reserved segments |     12    |  14 |   20 |   8 |\n");
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].device, 0);
  EXPECT_EQ(all[0].find("allocated_bytes.all.current")->high, 2_MiB - 1);
  EXPECT_EQ(all[0].find("num_ooms")->bytes, 2u);
  EXPECT_EQ(all[1].device, 3);
  EXPECT_EQ(all[1].find("allocated_bytes.all.current")->bytes, 26377_MiB);
  EXPECT_EQ(all[1].find("segment.all.current")->bytes, 12u);
  EXPECT_EQ(all[1].find("num_ooms"), nullptr);
}

}  // namespace
}  // namespace vramlab
