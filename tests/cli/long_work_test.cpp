// Ctrl-C in the middle of long verbs. A named pipe as first file holds the program until the signal is there.
#include <csignal>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recordings/input_file.hpp"
#include "tests/cli/cli_rig.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

class LongWorkTest : public CliTest {
 protected:
  /// Runs the program with `arguments`, which name the pipe "first", and sends it SIGINT while it waits for
  /// what is in `file`.
  Ran interrupted(const std::string& arguments, const std::string& file) const {
    EXPECT_EQ(::mkfifo(folder.file("first").c_str(), 0600), 0);
    const std::string command =
        "cd '" + folder.path().string() + "' && exec '" VRAMLAB_PROGRAM "' " + arguments + " >out 2>err";
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    {
      std::ofstream pipe{folder.file("first"), std::ios::binary};  // opens when the program reads it
      ::kill(child, SIGINT);
      std::ifstream content{file, std::ios::binary};
      pipe << content.rdbuf();
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::unlink(folder.file("first").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_input_file(folder.file("out")),
            read_input_file(folder.file("err"))};
  }

  static std::string data(const std::string& name) {
    return std::string{VRAMLAB_SOURCE_DIR} + "/tests/data/" + name;
  }
};

TEST_F(LongWorkTest, VerifySaysWhatItHas) {
  const std::string log = data("oracle/default_1.json.gz");
  const Ran ran = interrupted("verify first '" + log + "' '" + log + "'", log);
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.err, "Stopped after 1 of 3 files.\n");
  EXPECT_THAT(ran.out, testing::StartsWith("1 of 1 recordings are reproduced exactly (1454 addresses"));
}

TEST_F(LongWorkTest, FitMakesNoModelOfAPart) {
  const std::string snapshot = data("recorded/lstm_fit.pickle.gz");
  const std::string marks = " --marks '" + data("recorded/lstm_fit.marks.json") + "'";
  const Ran ran = interrupted("fit first '" + snapshot + "'" + marks + marks + " -o model.json", snapshot);
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.err, "Stopped after 1 of 2 snapshots.\n");
  EXPECT_EQ(ran.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder.file("model.json")));
}

TEST_F(LongWorkTest, FindBatchProbesNoMore) {
  const Ran ran =
      interrupted("find-batch first", std::string{VRAMLAB_SOURCE_DIR} + "/scenarios/find-phases.json");
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.err, "Stopped after 0 probes.\n");
  EXPECT_THAT(ran.out, HasSubstr("No batch was found: stopped by the user."));
}

}  // namespace
}  // namespace vramlab
