// Stands for libFuzzer in a build without it: a target gets every seed, and each bent in a fixed number of
// ways.
//
//   fuzz_list ROUNDS SEED_OR_FOLDER... [WORDS.dict]
//
// The same inputs every time. What a target throws or dies of is a finding; its input is in the file
// `last-input` of the working folder.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t below(Random& random, std::size_t bound) {
  return static_cast<std::size_t>(random() % std::max<std::size_t>(bound, 1));
}

// What lies between the quotes of each line; \xNN is a byte, \ before anything else that itself.
std::vector<std::string> words_of(const fs::path& dictionary) {
  std::vector<std::string> words;
  std::ifstream in(dictionary);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('"')) continue;
    std::string word;
    for (std::size_t at = 1; at < line.size() && line[at] != '"'; ++at) {
      const bool escaped = line[at] == '\\';
      if (escaped && line[at + 1] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(at + 2, 2), nullptr, 16));
        at += 3;
      } else {
        word += line[at += escaped ? 1 : 0];
      }
    }
    words.push_back(word);
  }
  return words;
}

std::string bent(std::string text, const std::vector<std::string>& words, Random& random) {
  for (std::size_t left = 1 + below(random, 4); left > 0; --left) {
    const std::size_t at = below(random, text.size() + 1);
    const std::size_t length = below(random, 1 + below(random, 40));
    switch (below(random, 5)) {
      case 0:  // a byte
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:  // a piece away
        text.erase(at, length);
        break;
      case 2:  // a piece twice
        text.insert(at, text.substr(at, length));
        break;
      case 3:  // the end away
        if (below(random, 8) == 0) text.resize(at);
        break;
      default:  // a word, in the place of what follows or before it
        if (!words.empty()) text.replace(at, below(random, 2) * length, words[below(random, words.size())]);
    }
  }
  return text;
}

void try_one(const std::string& input) {
  std::ofstream("last-input", std::ios::binary) << input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<fs::path> seeds;
  std::vector<std::string> words;
  for (int i = 2; i < count; ++i) {
    const fs::path path = arguments[i];
    if (path.extension() == ".dict") {
      words = words_of(path);
    } else if (fs::is_directory(path)) {
      std::copy(fs::directory_iterator(path), {}, std::back_inserter(seeds));
    } else {
      seeds.push_back(path);
    }
  }
  if (seeds.empty()) {
    std::fputs("usage: fuzz_TARGET ROUNDS SEED_OR_FOLDER... [WORDS.dict]\n", stderr);
    return 2;
  }
  std::sort(seeds.begin(), seeds.end());
  const long rounds = std::stol(arguments[1]);
  for (const fs::path& seed : seeds) {
    const std::string text = bytes_of(seed);
    Random random{1};
    try {
      try_one(text);
      for (long round = 0; round < rounds; ++round) try_one(bent(text, words, random));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s, bent: %s (input: last-input)\n", seed.c_str(), error.what());
      return 1;
    }
  }
  std::printf("%zu seeds, each bent %ld times\n", seeds.size(), rounds);
  return 0;
}
