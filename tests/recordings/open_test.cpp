#include "recordings/open.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filter/zstd.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "tests/cli/scratch_folder.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;
namespace io = boost::iostreams;

template <class... Filters>
std::string packed(const std::string& content, const Filters&... filters) {
  std::ostringstream sink;
  io::filtering_ostream out;
  (out.push(filters), ...);
  out.push(sink);
  out << content;
  out.reset();
  return sink.str();
}

FileKind kind_of_text(const std::string& content, const std::string& name = "file") {
  std::istringstream in{content};
  InputFile file{in, name};
  return kind_of(file);
}

FileKind required(const std::string& content, const std::string& name, const std::vector<FileKind>& wanted) {
  std::istringstream in{content};
  InputFile file{in, name};
  return require_kind(file, wanted);
}

std::string refusal(const std::string& content, const std::string& name,
                    const std::vector<FileKind>& wanted) {
  try {
    required(content, name, wanted);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

struct Example {
  FileKind kind;
  std::string content;
};

std::vector<Example> examples() {
  using enum FileKind;
  return {
      {snapshot, std::string("\x80\x04}.", 4)},
      {oracle_log, R"({"torch": "2.11.0", "keys": ["num_ooms"], "ops": []})"},
      {allocation_script, "# by hand\n\nop,id,bytes\nalloc,1,1MiB\n"},
      {truth, R"({"conf": "", "cap_mib": 0, "entries": 1, "marks": []})"},
      {marks, R"({"workload": "lstm", "marks": [{"t_us": 1}]})"},
      {oom_message, "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."},
      {memory_stats, R"({"allocated_bytes.all.current": 1, "reserved_bytes.all.current": 2})"},
      {memory_stats, R"({"allocated_bytes": {"all": {"current": 1}}, "reserved_bytes": {}})"},
      {run_trace, "{\"iteration\": 1, \"start_s\": 0}\n{\"iteration\": 2, \"start_s\": 1}\n"},
      {run_table, "iteration,start_s,duration_s\n1,0,1\n"},
      {job_list, R"({"jobs": [{"duration_s": 5, "need": "1GiB"}]})"},
      {job_table, "name,arrival_s,duration_s,need\na,0,5,1GiB\n"},
      {gavel_trace, "ResNet-18 (batch size 16)\tpython3 main.py\tcifar10\t--num_steps\t0\t100\t0\t1\n"},
      {openb_pods, "name,cpu_milli,num_gpu,gpu_milli\np,1,1,500\n"},
      {openb_nodes, "sn,cpu_milli,memory_mib,gpu,model\nn,1,1,2,P100\n"},
      {result, R"({"scenario": "ramp", "policies": []})"},
      {result, R"([{"scenario": "ramp", "policies": []}, {"scenario": "corner", "policies": []}])"},
      {scenario, "// people write comments\n{\"kind\": \"jobs\", \"jobs\": [], \"policies\": []}"},
      {scenario, R"({"kind": "snapshot", "workload": {}, "rows": []})"},
      {grid, R"({"name": "lstm", "total_memory": 1, "rows": []})"},
      {model, R"({"kind": "linear", "name": "x"})"},
      {unknown, ""},
      {unknown, " \n"},
      {unknown, "Dear reader,\nthis is a letter.\n"},
      {unknown, R"({"title": "of no kind"})"},
      {unknown, "[1, 2]"},
  };
}

TEST(Open, TellsEveryKindByItsContentHoweverItIsPacked) {
  for (const auto& [kind, content] : examples()) {
    for (const std::string name : {"file", "file.pickle", "file.json", "file.csv.gz"}) {
      EXPECT_EQ(kind_of_text(content, name), kind) << content << " in " << name;
    }
    EXPECT_EQ(kind_of_text(packed(content, io::gzip_compressor())), kind) << content;
    EXPECT_EQ(kind_of_text(packed(content, io::zstd_compressor())), kind) << content;
  }
}

// A program may sort the keys of what it writes.
TEST(Open, TellsAKindByKeysThatStandFarBehind) {
  const std::string many(200'000, ' ');
  EXPECT_EQ(kind_of_text(R"({"policies": [)" + many + R"(], "scenario": "ramp"})"), FileKind::result);
  EXPECT_EQ(kind_of_text(R"({"marks": [)" + many + R"(], "cap_mib": 0})"), FileKind::truth);
}

TEST(Open, LeavesTheFileToBeReadFromItsBeginning) {
  for (const auto& [kind, content] : examples()) {
    std::istringstream in{packed(content, io::zstd_compressor())};
    InputFile file{in, "file"};
    kind_of(file);
    EXPECT_EQ(file.rest(), content);
  }
  const std::string longer(100'000, 'x');
  std::istringstream in{longer};
  InputFile file{in, "file"};
  kind_of(file);
  std::string read(longer.size() + 1, ' ');
  EXPECT_EQ(file.read(read.data(), 70'000), 70'000u);
  EXPECT_EQ(file.read(read.data() + 70'000, 30'001), 30'000u);
  EXPECT_EQ(read, longer + ' ');
}

TEST(Open, LetsTheNameDecideWhereTheContentDoesNot) {
  using enum FileKind;
  EXPECT_EQ(required("damaged", "a.pickle.gz", {snapshot, allocation_script}), snapshot);
  EXPECT_EQ(required("", "a.csv", {snapshot, allocation_script}), allocation_script);
  EXPECT_EQ(required("{", "a.json.zst", {job_table, job_list}), job_list);
  EXPECT_EQ(required("bytes,id\n", "a.csv", {job_table, job_list}), job_table);
}

TEST(Open, LetsTheFormDecideWhereNothingElseDoes) {
  using enum FileKind;
  EXPECT_EQ(required("{}", "standard input", {memory_stats, oom_message}), memory_stats);
  EXPECT_EQ(required("it failed", "standard input", {memory_stats, oom_message}), oom_message);
}

TEST(Open, SaysWhatTheFileIsAndWhatIsWanted) {
  using enum FileKind;
  EXPECT_EQ(refusal(R"({"keys": [], "ops": []})", "a.csv", {snapshot, allocation_script}),
            "a.csv: is an oracle log (.json); give a snapshot (.pickle) or an allocation script (.csv).");
  EXPECT_EQ(
      refusal("Dear reader", "letter", {snapshot, allocation_script}),
      "letter: is of no kind that is known here; give a snapshot (.pickle) or an allocation script (.csv).");
  EXPECT_EQ(refusal("", "empty", {snapshot, oracle_log, model}),
            "empty: is empty; give a snapshot (.pickle), an oracle log (.json) or a workload model (.json).");
}

TEST(Open, RefusesAFolder) {
  EXPECT_THROW(read_client_programs(std::filesystem::temp_directory_path()), InputError);
}

// As a shell's <(...) hands it in: without a name that says anything, to be read once.
TEST(Open, ReadsAPipe) {
  const ScratchFolder folder;
  const std::string pipe = folder.file("63");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string script = packed("op,id,bytes\nalloc,1,1MiB\n", io::gzip_compressor());
  const std::jthread writer([&] { std::ofstream(pipe, std::ios::binary) << script; });
  const auto programs = read_client_programs(pipe);
  ASSERT_EQ(programs.size(), 1u);
  EXPECT_EQ(programs[0].blocks, 1u);
}

TEST(Open, ReadsASnapshotAndWhatLiesBesideItInEveryPacking) {
  const ScratchFolder folder;
  const std::filesystem::path recorded = std::filesystem::path{VRAMLAB_SOURCE_DIR} / "tests/data/recorded";
  const auto expected = verify_recording(recorded / "lstm.pickle.gz").at(0).replay;
  ASSERT_GT(expected.counters_checked, 0u);  // those of the truth file
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder.file(name), std::ios::binary) << content;
  };
  write("a.pickle.zst", packed(read_input_file(recorded / "lstm.pickle.gz"), io::zstd_compressor()));
  write("a.truth.json.zst", packed(read_input_file(recorded / "lstm.truth.json.gz"), io::zstd_compressor()));
  write("b", read_input_file(recorded / "lstm.pickle.gz"));
  write("b.truth.json", read_input_file(recorded / "lstm.truth.json.gz"));
  for (const char* name : {"a.pickle.zst", "b"}) {
    const auto verified = verify_recording(folder.file(name));
    ASSERT_EQ(verified.size(), 1u);
    EXPECT_TRUE(verified[0].replay.exact());
    EXPECT_EQ(verified[0].replay.counters_checked, expected.counters_checked);
  }
}

}  // namespace
}  // namespace vramlab
