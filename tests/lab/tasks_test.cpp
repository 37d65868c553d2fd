// Tasks on threads: their order, what stops them, and what they throw. On ranks:
// tests/cli/ranks_cli_test.cpp.
#include "lab/tasks.hpp"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"

namespace vramlab {
namespace {

// Each gives its number.
std::vector<Task> numbered_tasks(std::size_t count) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < count; ++i) tasks.push_back({.perform = [i] { return Json(i); }});
  return tasks;
}

// One of unknown length (0) may be the longest.
TEST(Tasks, TheLongestBeginAndEqualOnesKeepTheirOrder) {
  std::vector<Task> tasks = numbered_tasks(5);
  tasks[1].length = 3;
  tasks[3].length = 7;
  tasks[4].length = 3;
  EXPECT_EQ(longest_first(tasks, {0, 1, 2, 3, 4}), (std::vector<std::size_t>{0, 2, 3, 1, 4}));
}

TEST(Tasks, ResultsAreInTheOrderOfTheTasksAtAnyNumberOfThreads) {
  const auto tasks = numbered_tasks(50);
  const std::vector<Json> one = perform_all(tasks, 1);
  EXPECT_EQ(one, perform_all(tasks, 4));
  EXPECT_EQ(one[49], 49);
}

TEST(Tasks, OneThatThrowsLosesNoOtherAndTheFirstErrorIsThrown) {
  std::vector<Task> tasks = numbered_tasks(6);
  for (const std::size_t bad : {std::size_t{4}, std::size_t{2}}) {
    tasks[bad].perform = [bad]() -> Json { throw InputError("task", std::to_string(bad)); };
  }
  std::size_t taken = 0;
  try {
    Threads{2}.perform(tasks, {0, 1, 2, 3, 4, 5}, {.take = [&](std::size_t, const Json&) { ++taken; }});
    FAIL() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().front().what, "2");
  }
  EXPECT_EQ(taken, 4U);
}

TEST(Tasks, AStopIsSaidOnceAndLetsNoOtherBegin) {
  std::atomic<bool> stop{false};
  std::size_t taken = 0;
  int said = 0;
  Threads{1}.perform(numbered_tasks(10), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                     {.take = [&](std::size_t, const Json&) { stop = ++taken == 3; },
                      .stop = &stop,
                      .stopped = [&] { ++said; }});
  EXPECT_EQ(taken, 3U);
  EXPECT_EQ(said, 1);
}

TEST(Tasks, ResultsThatNobodyCanKeepEndTheWork) {
  std::size_t taken = 0;
  const auto full = [&](std::size_t, const Json&) {
    ++taken;
    throw InputError("disk", "is full.");
  };
  EXPECT_THROW((Threads{1}.perform(numbered_tasks(10), {0, 1, 2}, {.take = full})), InputError);
  EXPECT_EQ(taken, 1U);
}

TEST(Tasks, FiguresComeBackAsTheyWere) {
  const std::vector<LabelledFigures> figures{
      {"a", {{"third", 1.0 / 3}, {"none", std::nan("")}, {"whole", 7}}}};
  const auto back = labelled_from(Json::parse(labelled_json(figures).dump()));
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].metrics[0].value, 1.0 / 3);
  EXPECT_TRUE(std::isnan(back[0].metrics[1].value));
  EXPECT_EQ(back[0].metrics[2].value, 7);
}

// 2, 4 and 9: mean 5, and the squares of -3, -1 and 4 are 26, so the deviation of the sample is sqrt(13).
TEST(Tasks, SeveralSeedsAreMeansAndDeviationsOfTheSample) {
  const auto run = [](double value) { return std::vector<LabelledFigures>{{"a", {{"figure", value}}}}; };
  auto runs = std::vector{run(2), run(4), run(9)};
  runs[1].push_back({"oracle", {{"figure", 1}}});  // there with one seed only
  const SeededFigures all = over_seeds(runs);
  EXPECT_EQ(all.means[0].metrics[0].value, 5);
  EXPECT_DOUBLE_EQ(all.spreads[0].metrics[0].value, std::sqrt(13));
  EXPECT_EQ(all.means[1].label, "oracle");
  EXPECT_EQ(all.means[1].metrics[0].value, 1);
  EXPECT_TRUE(std::isnan(all.spreads[1].metrics[0].value));
}

}  // namespace
}  // namespace vramlab
