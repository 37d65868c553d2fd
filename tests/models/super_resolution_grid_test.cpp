// The super-resolution model against 85 measured points: memory through the real allocator rules, and time.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "lab/json.hpp"
#include "lab/model/file.hpp"
#include "sim/runs/step_executor.hpp"

namespace vramlab {
namespace {

const std::string kGridSource = VRAMLAB_SOURCE_DIR;

struct Row {
  Point point;
  std::int64_t base_off = 0;       // bytes, simulated − measured
  std::int64_t allocated_off = 0;  // of the peaks
  std::int64_t reserved_off = 0;
  std::int64_t requested_off = 0;
  double allocated_error = 0;  // %
  double reserved_error = 0;
  double time_error = 0;
};

double percent(double simulated, double measured) { return 100 * (simulated / measured - 1); }

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Errors without sign, in order.
struct Errors {
  explicit Errors(std::vector<double> signed_errors) : values(std::move(signed_errors)) {
    for (double& value : values) value = std::abs(value);
    std::sort(values.begin(), values.end());
  }
  [[nodiscard]] double quantile(double share) const {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(rank, 1) - 1];
  }
  std::vector<double> values;
};

template <class Member>
Errors errors(const std::vector<Row>& rows, Member member) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(row.*member);
  return Errors(std::move(values));
}

// One process for the whole grid, as it was measured: what an earlier point leaves behind decides where
// later ones find room.
std::vector<Row> replay_grid() {
  const Json grid = read_json_file(kGridSource + "/tests/data/superres-grid.json");
  const auto model = load_model_file(kGridSource + "/models/superres-rrdb6.json");
  SimulatedCard card{grid["total_memory"].get<Bytes>()};
  SimulatedProcess process{card, AllocatorOptions{}};
  process.executor().run(model->build());
  for (const Json& shape : grid["warm_up"]) process.executor().run(model->step({shape[0], shape[1]}));

  std::vector<Row> rows;
  for (const Json& measured : grid["rows"]) {
    Row row{.point = {measured[0], measured[1]}};
    const auto off = [](std::int64_t simulated, const Json& value) {
      return simulated - value.get<std::int64_t>();
    };
    process.allocator().empty_cache();
    process.allocator().reset_peak_stats();
    row.base_off = off(process.allocator().stats().allocated_bytes.all().current, measured[2]);
    const StepProgram step = model->step(row.point);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(process.executor().run(step).result, StepResult::ok);

    const MemoryStats& stats = process.allocator().stats();
    row.allocated_off = off(stats.allocated_bytes.all().peak, measured[3]);
    row.reserved_off = off(stats.reserved_bytes.all().peak, measured[4]);
    row.requested_off = off(stats.requested_bytes.all().peak, measured[5]);
    row.allocated_error = percent(static_cast<double>(stats.allocated_bytes.all().peak), measured[3]);
    row.reserved_error = percent(static_cast<double>(stats.reserved_bytes.all().peak), measured[4]);
    row.time_error = percent(to_seconds(step.duration) * 1e3, middle(measured[6].get<std::vector<double>>()));
    rows.push_back(row);
  }
  return rows;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> result = replay_grid();
  return result;
}

auto count_zero(std::int64_t Row::*member) {
  return std::count_if(rows().begin(), rows().end(), [&](const Row& row) { return row.*member == 0; });
}

std::vector<Row> rows_where(bool fitted) {
  std::vector<Row> some;
  for (std::size_t i = 0; i < rows().size(); ++i) {
    if ((i % 3 == 0) == fitted) some.push_back(rows()[i]);
  }
  return some;
}

// Median, 95th percentile and largest in %, to half of the last digit.
void expect_errors(const Errors& e, double median, double most_of_them, double largest, double digit) {
  EXPECT_NEAR(e.quantile(0.5), median, digit / 2);
  EXPECT_NEAR(e.quantile(0.95), most_of_them, digit / 2);
  EXPECT_NEAR(e.values.back(), largest, digit / 2);
}

// The table of docs/fidelity.md, "Memory and time at 85 measured points".
TEST(SuperResolutionGrid, HasTheErrorsOfTheDocument) {
  expect_errors(errors(rows(), &Row::allocated_error), 0, 0.020, 0.424, 0.001);
  expect_errors(errors(rows(), &Row::reserved_error), 0, 0.709, 3.731, 0.001);
  expect_errors(errors(rows_where(false), &Row::time_error), 3.4, 19.7, 36.5, 0.1);
  expect_errors(errors(rows_where(true), &Row::time_error), 3.9, 21.3, 24.1, 0.1);
  EXPECT_EQ(rows().size(), 85u);
  EXPECT_EQ(count_zero(&Row::allocated_off), 80);
  EXPECT_EQ(count_zero(&Row::reserved_off), 53);
  EXPECT_EQ(count_zero(&Row::requested_off), 83);
}

TEST(SuperResolutionGrid, HoldsTheSameBytesBetweenSteps) {
  EXPECT_EQ(count_zero(&Row::base_off), std::ssize(rows()));  // 70,438,912 B at every point
}

TEST(SuperResolutionGrid, PredictsPeakAllocated) {
  const Errors e = errors(rows(), &Row::allocated_error);
  EXPECT_EQ(e.quantile(0.5), 0);
  EXPECT_LE(e.quantile(0.95), 0.1);
  EXPECT_LE(e.values.back(), 0.5);
  EXPECT_GE(count_zero(&Row::allocated_off), 78);
}

TEST(SuperResolutionGrid, PredictsPeakReserved) {
  const Errors e = errors(rows(), &Row::reserved_error);
  EXPECT_LE(e.quantile(0.5), 0.1);
  EXPECT_LE(e.quantile(0.95), 1.0);
  EXPECT_LE(e.values.back(), 4.0);
}

TEST(SuperResolutionGrid, PredictsStepTimeOfPointsNotUsedForTheLaw) {
  const Errors e = errors(rows_where(false), &Row::time_error);
  EXPECT_LE(e.quantile(0.5), 5);
  EXPECT_LE(e.quantile(0.95), 25);
}

}  // namespace
}  // namespace vramlab
