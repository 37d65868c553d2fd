#include "models/gpu_catalogue.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "core/error.hpp"

namespace vramlab {
namespace {

// The context was measured on an H100 and an H200, with the same result. It depends on the number of
// multiprocessors and on the driver; for the other cards the figure stands in.
constexpr Bytes kContext = 552'402'944;

constexpr Gpu measured(std::string_view id, std::string_view name, Bytes total, std::string_view seen,
                       std::string_view source) {
  return {id, name, total, 0, seen, source, kContext, GpuFigures::measured};
}

// Totals printed in bytes, in MiB without decimals, and in GiB with two.
constexpr Gpu bytes(std::string_view id, std::string_view name, Bytes total, std::string_view seen,
                    std::string_view source) {
  return {id, name, total, 0, seen, source, kContext, GpuFigures::reported};
}
constexpr Gpu mib(std::string_view id, std::string_view name, Bytes total, std::string_view seen,
                  std::string_view source) {
  return {id, name, total * 1_MiB, 512_KiB, seen, source, kContext, GpuFigures::reported};
}
constexpr Gpu gib(std::string_view id, std::string_view name, Bytes hundredths, std::string_view seen,
                  std::string_view source, Bytes rounding = 1_GiB / 200) {
  return {id, name, (hundredths * 1_GiB + 50) / 100, rounding, seen, source, kContext, GpuFigures::reported};
}
constexpr Bytes kOneDecimal = 1_GiB / 20;

// What is in quotation marks stands in a log or a message in a public repository.
constexpr std::array kCatalogue{
    gib("a10-24gb", "NVIDIA A10", 2206, "22.06 to 22.18", "log \"A10: total capacity of 22.06 GiB\""),
    bytes("a100-40gb", "NVIDIA A100 40GB", 42'298'834'944, "39.39 to 39.59",
          "bottlerocket 3873; CoSeR 10; DenseCLIP 52"),
    gib("a100-80gb", "NVIDIA A100 80GB", 7914, "79.14 to 79.35", "Control-GIC 6; VAREdit 6"),
    mib("a10g-24gb", "NVIDIA A10G", 22'587, "22.06 to 22.20",
        "log \"NVIDIA A10G, total_memory=22587MB\"; Dreambooth-Stable-Diffusion 18"),
    gib("a30-24gb", "NVIDIA A30", 2353, "23.53", "RB-Modulation 5"),
    bytes("a40-48gb", "NVIDIA A40", 47'622'258'688, "44.35", "gpu4pyscf 304"),
    mib("b200-180gb", "NVIDIA B200", 182'631, "178.35 to 178.36",
        "log \"NVIDIA B200, total_memory=182631MB\""),
    gib("gh200-96gb", "NVIDIA GH200 480GB", 9450, "94.50", "log \"GH200 480GB, 94.5 GiB HBM3\""),
    gib("gtx-1080-ti-11gb", "NVIDIA GeForce GTX 1080 Ti", 1092, "10.92", "TransBTS 45"),
    measured("h100-80gb", "NVIDIA H100 80GB HBM3", 85'017'493'504, "79.11 to 79.18", "measured; vllm 27508"),
    mib("h100-nvl-94gb", "NVIDIA H100 NVL", 95'320, "93.09", "log \"NVIDIA H100 NVL, 95320MiB\""),
    mib("h20-96gb", "NVIDIA H20", 97'285, "95.00", "log \"NVIDIA H20, total_memory=97285MB\""),
    measured("h200-141gb", "NVIDIA H200", 150'109'880'320, "139.80", "measured"),
    gib("l4-24gb", "NVIDIA L4", 2203, "22.03 to 22.16", "evo2 190; log \"NVIDIA L4, 22693MiB\""),
    gib("l40-48gb", "NVIDIA L40", 4440, "44.40", "Qwen3-VL 2097"),
    gib("l40s-48gb", "NVIDIA L40S", 4439, "44.39 to 44.53",
        "log \"48 GB L40S, total capacity of 44.39 GiB\"; Wan2.1 205"),
    mib("mi210-64gb", "AMD Instinct MI210", 65'520, "63.98", "log \"MI210, total_memory=65520MB\""),
    mib("mi250x-64gb", "AMD Instinct MI250X", 65'520, "63.98",
        "log \"MI250X, total_memory=65520MB\"; one of its two dies"),
    mib("mi300x-192gb", "AMD Instinct MI300X", 196'592, "191.98", "ROCm 4203"),
    gib("mi325x-256gb", "AMD Instinct MI325X", 25'598, "255.98", "vllm 41962"),
    mib("p100-16gb", "Tesla P100-PCIE-16GB", 16'276, "15.89 to 15.90",
        "log \"Tesla P100-PCIE-16GB, 16276MiB\""),
    gib("rtx-2060-6gb", "NVIDIA GeForce RTX 2060", 579, "5.79", "meshrcnn 92"),
    mib("rtx-2080-ti-11gb", "NVIDIA GeForce RTX 2080 Ti", 10'825, "10.57 to 10.76",
        "log \"RTX 2080 Ti, 10825MiB\"; image-captioning 11"),
    mib("rtx-3060-12gb", "NVIDIA GeForce RTX 3060", 11'910, "11.63 to 11.76",
        "log \"RTX 3060, 11910MiB\"; log \"RTX 3060, 12045MiB\""),
    gib("rtx-3070-8gb", "NVIDIA GeForce RTX 3070", 776, "7.76 to 7.79", "GASDA 19; yolov5 2510"),
    mib("rtx-3080-10gb", "NVIDIA GeForce RTX 3080", 10'002, "9.77 to 9.78",
        "log \"RTX 3080, 10002MiB\"; CogVideo 34"),
    bytes("rtx-3080-ti-12gb", "NVIDIA GeForce RTX 3080 Ti", 12'615'745'536, "11.75", "yolov7 847"),
    mib("rtx-3090-24gb", "NVIDIA GeForce RTX 3090", 24'124, "23.56 to 23.70",
        "log \"RTX 3090, 24124MiB\"; DSP 10"),
    mib("rtx-3090-ti-24gb", "NVIDIA GeForce RTX 3090 Ti", 24'110, "23.54 to 23.65",
        "log \"RTX 3090 Ti, 24110MiB\"; log \"RTX 3090 Ti, 24214MiB\""),
    gib("rtx-4060-8gb", "NVIDIA GeForce RTX 4060", 762, "7.62 to 7.75", "log \"RTX 4060 (7.62 GB\""),
    gib("rtx-4060-ti-16gb", "NVIDIA GeForce RTX 4060 Ti 16GB", 1560, "15.6 to 15.67",
        "log \"RTX 4060 Ti (15.6 GiB)\"", kOneDecimal),
    mib("rtx-4060-ti-8gb", "NVIDIA GeForce RTX 4060 Ti 8GB", 7'806, "7.62", "log \"RTX 4060 Ti, 7806MiB\""),
    mib("rtx-4070-12gb", "NVIDIA GeForce RTX 4070", 11'994, "11.71 to 11.72", "log \"RTX 4070, 11994MiB\""),
    mib("rtx-4070-ti-12gb", "NVIDIA GeForce RTX 4070 Ti", 12'007, "11.73", "log \"RTX 4070 Ti, 12007MiB\""),
    mib("rtx-4070-ti-super-16gb", "NVIDIA GeForce RTX 4070 Ti SUPER", 16'069, "15.69",
        "log \"RTX 4070 Ti SUPER, 16069MiB\""),
    mib("rtx-4080-16gb", "NVIDIA GeForce RTX 4080", 16'049, "15.67",
        "log \"RTX 4080, total_memory=16049MB\""),
    mib("rtx-4080-super-16gb", "NVIDIA GeForce RTX 4080 SUPER", 15'944, "15.57",
        "log \"RTX 4080 SUPER, 15944MiB\""),
    mib("rtx-4090-24gb", "NVIDIA GeForce RTX 4090", 24'081, "23.52 to 23.68",
        "log \"RTX 4090, 24081MiB\"; CogVideo 36"),
    gib("rtx-5070-12gb", "NVIDIA GeForce RTX 5070", 1150, "11.50", "log \"RTX 5070 (11.50GiB usable)\""),
    gib("rtx-5070-ti-16gb", "NVIDIA GeForce RTX 5070 Ti", 1547, "15.47", "log \"RTX 5070 Ti (15.47 GiB\""),
    mib("rtx-5080-16gb", "NVIDIA GeForce RTX 5080", 15'840, "15.47", "log \"RTX 5080, 15840MiB\""),
    mib("rtx-5090-32gb", "NVIDIA GeForce RTX 5090", 32'102, "31.35 to 31.37",
        "log \"RTX 5090, 32102MiB\"; TrajectoryCrafter 20; Wan2.1 465"),
    gib("rtx-6000-ada-48gb", "NVIDIA RTX 6000 Ada Generation", 4443, "44.43 with ECC to 47.40",
        "MTVCrafter 21; log \"RTX 6000 Ada Generation, 48539MiB\""),
    gib("rtx-8000-48gb", "Quadro RTX 8000", 4746, "47.46", "stable-dreambooth 8"),
    gib("rtx-a2000-12gb", "NVIDIA RTX A2000 12GB", 1153, "11.53 to 11.74",
        "vllm 12030; log \"RTX A2000 12GB, 12017MiB\""),
    gib("rtx-a4000-16gb", "NVIDIA RTX A4000", 1561, "15.61 to 15.74",
        "VGGT-Long 6; log \"RTX A4000, 16117MiB\""),
    mib("rtx-a5000-24gb", "NVIDIA RTX A5000", 24'248, "23.68; 22.19 with ECC",
        "log \"RTX A5000, 24248MiB\"; log \"RTX A5000, 22721MiB\""),
    gib("rtx-a6000-48gb", "NVIDIA RTX A6000", 4740, "47.40 to 47.53; 44.55 with ECC",
        "log \"A6000: total capacity of 47.40 GiB\""),
    mib("rtx-pro-6000-96gb", "NVIDIA RTX PRO 6000 Blackwell", 97'250, "94.97",
        "log \"RTX PRO 6000 Blackwell Server Edition, total_memory=97250MB\""),
    gib("rx-7900-xtx-24gb", "AMD Radeon RX 7900 XTX", 2398, "23.98", "log \"RX 7900 XTX (23.98 GiB)\""),
    gib("t4-16gb", "Tesla T4", 1456, "14.56 to 14.58", "CatVTON 133; Qwen3-VL 1046; GeoPixel 5"),
    gib("v100-16gb", "NVIDIA V100 16GB", 1578, "15.78", "Shift-GCN 34"),
    gib("v100-32gb", "NVIDIA V100 32GB", 3175, "31.75", "SAM-Med3D 8"),
};

/// A name taken apart: "Tesla V100-SXM2-16GB" is the model "v100" of 16 GB.
struct CardName {
  std::string model;
  std::string size;       ///< empty if the name has none
  bool readable = false;  ///< false for names of two sizes, such as parts of a card ("A100 80GB MIG 1g.10gb")
};

// Words that tell nothing of the memory.
constexpr std::array<std::string_view, 24> kIdleWords{
    "nvidia", "geforce", "tesla", "quadro",     "amd",         "radeon", "instinct",  "gpu",
    "sxm",    "sxm2",    "sxm3",  "sxm4",       "sxm5",        "pcie",   "hbm2",      "hbm2e",
    "hbm3",   "hbm3e",   "mem",   "generation", "workstation", "server", "blackwell", "edition"};
constexpr std::array<std::string_view, 4> kSeries{"", "rtx", "gtx", "rx"};

bool is_digits(std::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The number of "16gb", "16gib" and "16g"; empty for other words.
std::string_view size_in(std::string_view word) {
  for (const std::string_view unit : {"gb", "gib", "g"}) {
    if (word.ends_with(unit) && is_digits(word.substr(0, word.size() - unit.size()))) {
      return word.substr(0, word.size() - unit.size());
    }
  }
  return {};
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool apart = true;
  for (const char letter : name) {
    const auto c = static_cast<unsigned char>(letter);
    if (std::isalnum(c) == 0) {
      apart = true;
      continue;
    }
    if (apart) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(c));
    apart = false;
  }
  // "80 GB" is one word.
  for (std::size_t i = 1; i < words.size(); ++i) {
    if ((words[i] != "gb" && words[i] != "gib") || !is_digits(words[i - 1])) continue;
    words[i - 1] += words[i];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return words;
}

CardName card_name(std::string_view text) {
  CardName name{.model = {}, .size = {}, .readable = true};
  for (const std::string& word : words_of(text)) {
    if (const std::string_view size = size_in(word); !size.empty()) {
      if (!name.size.empty()) name.readable = false;
      name.size = size;
    } else if (std::find(kIdleWords.begin(), kIdleWords.end(), word) == kIdleWords.end()) {
      name.model += word;
    }
  }
  return name;
}

bool same_model(const CardName& wanted, const CardName& known) {
  return std::any_of(kSeries.begin(), kSeries.end(), [&](std::string_view series) {
    return known.model == std::string{series} + wanted.model;
  });
}

// The ids that may have been meant: the same model at other sizes, else the nearest name.
std::vector<std::string> ids_near(std::string_view text, const CardName& wanted) {
  std::vector<std::string> near;
  std::vector<std::string> ids;
  std::vector<std::string> models;
  for (const Gpu& gpu : kCatalogue) {
    const CardName known = card_name(gpu.id);
    if (same_model(wanted, known)) near.emplace_back(gpu.id);
    ids.emplace_back(gpu.id);
    models.push_back(known.model);
  }
  if (!near.empty()) return near;
  if (const std::string id = nearest_name(text, ids); !id.empty()) return {id};
  const std::string model = nearest_name(wanted.model, models);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (models[i] == model) near.push_back(ids[i]);
  }
  return near;
}

std::string did_you_mean(const std::vector<std::string>& ids) {
  if (ids.empty()) return " `vramlab gpus` lists all.";
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    text += (i == 0 ? " Did you mean \"" : i + 1 == ids.size() ? " or \"" : ", \"") + ids[i] + '"';
  }
  return text + '?';
}

}  // namespace

std::span<const Gpu> gpu_catalogue() { return kCatalogue; }

HostLink host_link(const Gpu* gpu) {
  // Four fifths of 16 lanes of each generation: 15.8, 31.5 and 63 GB/s.
  constexpr double kThird = 12.5e9;
  constexpr double kFourth = 25e9;
  constexpr double kFifth = 50e9;
  constexpr double kH200 = 55.2e9;  // blocks of 1 GiB, the slower of both directions; torch 2.11, driver 580
  constexpr std::array<std::string_view, 8> kOnFifth{"h100",   "h20",    "gh200",  "b200",
                                                     "mi300x", "mi325x", "rtx-50", "rtx-pro"};
  constexpr std::array<std::string_view, 6> kOnThird{"gtx", "p100", "rtx-20", "rtx-8000", "t4", "v100"};
  const auto is_one_of = [&](const auto& prefixes) {
    return std::ranges::any_of(prefixes,
                               [&](std::string_view prefix) { return gpu->id.starts_with(prefix); });
  };
  if (gpu == nullptr || is_one_of(kOnThird)) return {kThird};
  if (gpu->id == "h200-141gb") return {kH200, true};
  return {is_one_of(kOnFifth) ? kFifth : kFourth};
}

const Gpu& find_gpu(std::string_view name, const std::string& where) {
  const std::vector<std::string> words = words_of(name);
  const CardName wanted = card_name(name);
  std::vector<const Gpu*> meant;
  for (const Gpu& gpu : kCatalogue) {
    if (name == gpu.id || (!words.empty() && words == words_of(gpu.name))) return gpu;
    const CardName known = card_name(gpu.id);
    const bool same_size = wanted.size.empty() || wanted.size == known.size;
    if (wanted.readable && same_size && same_model(wanted, known)) meant.push_back(&gpu);
  }
  if (meant.size() == 1) return *meant.front();
  std::vector<std::string> ids;
  for (const Gpu* gpu : meant) ids.emplace_back(gpu->id);
  const std::string quoted = '"' + std::string(name) + '"';
  if (ids.empty()) {
    throw InputError(where, quoted + " is not a known card." + did_you_mean(ids_near(name, wanted)));
  }
  throw InputError(where, quoted + " is more than one card." + did_you_mean(ids));
}

}  // namespace vramlab
