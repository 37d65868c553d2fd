#include "models/gpu_catalogue.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Read with cudaMemGetInfo in our own recordings.
TEST(GpuCatalogue, KnowsTheMeasuredCards) {
  EXPECT_EQ(find_gpu("h100-80gb").total, 85'017'493'504U);
  EXPECT_EQ(find_gpu("h200-141gb").total, 150'109'880'320U);
  for (const char* id : {"h100-80gb", "h200-141gb"}) {
    EXPECT_EQ(find_gpu(id).context, 552'402'944U);
    EXPECT_EQ(find_gpu(id).rounding, 0U);
    EXPECT_FALSE(find_gpu(id).context_assumed());
  }
}

TEST(GpuCatalogue, AssumesTheContextOfAllOthers) {
  EXPECT_EQ(std::ranges::count_if(gpu_catalogue(), [](const Gpu& gpu) { return !gpu.context_assumed(); }), 2);
}

struct PublicTotal {
  const char* id;
  const char* printed;  ///< as the message or the log has it
  const char* source;
};

TEST(GpuCatalogue, HasTheTotalsOfPublicMessages) {
  const std::vector<PublicTotal> totals = {{"l4-24gb", "22.03 GiB", "evo2 190"},
                                           {"t4-16gb", "14.56 GiB", "CatVTON 133"},
                                           {"l40-48gb", "44.40 GiB", "Qwen3-VL 2097"},
                                           {"a100-80gb", "79.14 GiB", "Control-GIC 6"},
                                           {"a30-24gb", "23.53 GiB", "RB-Modulation 5"},
                                           {"rtx-4090-24gb", "24081 MiB", "RTX 4090, 24081MiB"},
                                           {"rtx-3070-8gb", "7.76 GiB", "GASDA 19"},
                                           {"rtx-3060-12gb", "11910 MiB", "RTX 3060, 11910MiB"},
                                           {"v100-16gb", "15.78 GiB", "Shift-GCN 34"},
                                           {"v100-32gb", "31.75 GiB", "SAM-Med3D 8"},
                                           {"mi300x-192gb", "196592 MiB", "ROCm 4203"},
                                           {"mi325x-256gb", "255.98 GiB", "vllm 41962"},
                                           {"a40-48gb", "47622258688", "gpu4pyscf 304"},
                                           {"a100-40gb", "42298834944", "bottlerocket 3873"},
                                           {"rtx-3080-ti-12gb", "12031.3125 MiB", "yolov7 847"}};
  for (const PublicTotal& known : totals) {
    EXPECT_EQ(find_gpu(known.id).total, parse_bytes(known.printed)) << known.id;
    EXPECT_THAT(std::string{find_gpu(known.id).source}, HasSubstr(known.source)) << known.id;
  }
}

// MiB without decimals is good to half a MiB, GiB with two to 0.005 GiB.
TEST(GpuCatalogue, SaysHowFarAPrintedTotalIsRounded) {
  EXPECT_EQ(find_gpu("rtx-3060-12gb").rounding, 512_KiB);
  EXPECT_EQ(find_gpu("l4-24gb").rounding, 5'368'709U);
  EXPECT_EQ(find_gpu("a40-48gb").rounding, 0U);
}

std::vector<std::string> words_of_text(std::string_view text) {
  std::istringstream in{std::string{text}};
  return {std::istream_iterator<std::string>{in}, {}};
}

// Measured on one card, and with ECC off.
const std::set<std::string_view> kLargerThanSeen{"h100-80gb", "rtx-a5000-24gb", "rtx-a6000-48gb"};

TEST(GpuCatalogue, NamesASourceAndTheTotalsSeenForEveryCard) {
  for (const Gpu& gpu : gpu_catalogue()) {
    EXPECT_FALSE(gpu.source.empty()) << gpu.id;
    const double total = static_cast<double>(gpu.total) / static_cast<double>(1_GiB);
    double least = total;
    for (const std::string& word : words_of_text(gpu.seen)) {
      if (const double seen = std::strtod(word.c_str(), nullptr); seen > 0) least = std::min(least, seen);
    }
    const bool larger = kLargerThanSeen.contains(gpu.id);
    EXPECT_EQ(total - least > 0.01, larger) << gpu.id;  // of several the smallest
  }
}

// "Fits" must not be false because of the size on the box: a driver keeps some of it.
TEST(GpuCatalogue, HasLessThanTheSizeOnTheBox) {
  for (const Gpu& gpu : gpu_catalogue()) {
    const std::string id{gpu.id};
    const auto size = std::strtoull(id.substr(id.rfind('-') + 1).c_str(), nullptr, 10);
    EXPECT_LT(gpu.total, size * 1_GiB) << id;
    EXPECT_GT(gpu.total, size * 9 / 10 * 1_GiB) << id;
  }
}

TEST(GpuCatalogue, IsSortedWithoutDoubles) {
  const auto cards = gpu_catalogue();
  const auto not_below = [](const Gpu& a, const Gpu& b) { return a.id >= b.id; };
  EXPECT_EQ(std::adjacent_find(cards.begin(), cards.end(), not_below), cards.end());
}

struct WrittenName {
  const char* name;
  const char* id;
};

// As issues, torch.cuda.get_device_name() and nvidia-smi have them.
TEST(GpuCatalogue, UnderstandsNamesAsPeopleWriteThem) {
  const std::vector<WrittenName> names = {
      {"4090", "rtx-4090-24gb"},
      {"RTX 4090", "rtx-4090-24gb"},
      {"rtx4090", "rtx-4090-24gb"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090-24gb"},
      {"3090Ti", "rtx-3090-ti-24gb"},
      {"4070 Ti Super", "rtx-4070-ti-super-16gb"},
      {"4060 Ti 8GB", "rtx-4060-ti-8gb"},
      {"h100", "h100-80gb"},
      {"NVIDIA H100 80GB HBM3", "h100-80gb"},
      {"H100 NVL", "h100-nvl-94gb"},
      {"h20", "h20-96gb"},
      {"l4", "l4-24gb"},
      {"L40S", "l40s-48gb"},
      {"A100-80GB", "a100-80gb"},
      {"a100 80 GB", "a100-80gb"},
      {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
      {"Tesla V100-SXM2-32GB", "v100-32gb"},
      {"Tesla T4", "t4-16gb"},
      {"A6000", "rtx-a6000-48gb"},
      {"1080 Ti", "gtx-1080-ti-11gb"},
      {"NVIDIA GH200 480GB", "gh200-96gb"},
      {"AMD Instinct MI300X", "mi300x-192gb"},
      {"7900 XTX", "rx-7900-xtx-24gb"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada-48gb"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-96gb"}};
  for (const WrittenName& known : names) EXPECT_EQ(find_gpu(known.name).id, known.id) << known.name;
  for (const Gpu& gpu : gpu_catalogue()) {
    EXPECT_EQ(find_gpu(gpu.id).id, gpu.id);
    EXPECT_EQ(find_gpu(gpu.name).id, gpu.id);
  }
}

std::string refusal(const std::string& name) {
  try {
    return "found " + std::string{find_gpu(name, "ratchet.json: /device/gpu").id};
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().at(0).where, "ratchet.json: /device/gpu");
    return error.problems().at(0).what;
  }
}

TEST(GpuCatalogue, ListsTheCandidatesOfANameOfSeveralCards) {
  EXPECT_EQ(refusal("a100"), "\"a100\" is more than one card. Did you mean \"a100-40gb\" or \"a100-80gb\"?");
  EXPECT_THAT(refusal("V100"), AllOf(HasSubstr("v100-16gb"), HasSubstr("v100-32gb")));
  EXPECT_THAT(refusal("4060 ti"), AllOf(HasSubstr("rtx-4060-ti-16gb"), HasSubstr("rtx-4060-ti-8gb")));
}

TEST(GpuCatalogue, SuggestsTheNearestName) {
  EXPECT_EQ(refusal("rtx-3060-12"), "\"rtx-3060-12\" is not a known card. Did you mean \"rtx-3060-12gb\"?");
  EXPECT_THAT(refusal("4090-48gb"), HasSubstr("Did you mean \"rtx-4090-24gb\"?"));
  EXPECT_EQ(refusal("voodoo"), "\"voodoo\" is not a known card. `vramlab gpus` lists all.");
  EXPECT_THAT(refusal(""), HasSubstr("is not a known card"));
}

// Other memory under nearly the same name.
TEST(GpuCatalogue, TakesNoLaptopCardAndNoPartOfACardForTheWhole) {
  EXPECT_THAT(refusal("NVIDIA GeForce RTX 4090 Laptop GPU"), HasSubstr("is not a known card"));
  EXPECT_THAT(refusal("NVIDIA A100 80GB PCIe MIG 1g.10gb"), HasSubstr("is not a known card"));
}

}  // namespace
}  // namespace vramlab
