#include "plugins/plugin_loader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include <elf.h>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>

#include "core/error.hpp"
#include "plugins/guard.hpp"
#include "plugins/plugin.hpp"

/// There in a static program alone (cli/static_program.cpp).
extern "C" const char vramlab_is_static __attribute__((weak));

namespace vramlab {
namespace {

namespace fs = std::filesystem;
namespace dll = boost::dll;

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw InputError(file.string(), what);
}

template <class Header>
bool read_at(std::ifstream& stream, std::uint64_t offset, Header& header) {
  stream.seekg(static_cast<std::streamoff>(offset));
  stream.read(reinterpret_cast<char*>(&header), sizeof header);
  return stream.good();
}

bool ends_before(std::uint64_t size, std::uint64_t offset, std::uint64_t length) {
  return offset > size || length > size - offset;
}

// Whether an ELF file (elf(5)) ends before one of the segments that its header lists. The dynamic loader maps
// these without a look at the file's length, and what touches a page behind the end dies of SIGBUS. Files
// that the loader itself refuses (other classes, a header that is cut) are not judged.
bool is_cut_off(const fs::path& shared_object) {
  std::ifstream stream{shared_object, std::ios::binary};
  Elf64_Ehdr file{};
  if (!read_at(stream, 0, file)) return false;
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64) return false;
  const std::uint64_t size = fs::file_size(shared_object);
  for (std::uint64_t i = 0; i < file.e_phnum; ++i) {
    const std::uint64_t offset = file.e_phoff + i * file.e_phentsize;
    Elf64_Phdr segment{};
    if (ends_before(size, offset, sizeof segment) || !read_at(stream, offset, segment)) return true;
    if (segment.p_type == PT_LOAD && ends_before(size, segment.p_offset, segment.p_filesz)) return true;
  }
  return false;
}

// Asked first: what the dynamic loader says of a text file or a folder helps nobody.
void require_shared_library(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) refuse(file, "there is no such plugin.");
  std::array<char, 4> magic{};
  std::ifstream stream{file, std::ios::binary};
  stream.read(magic.data(), magic.size());
  if (magic != std::array{'\x7f', 'E', 'L', 'F'}) {
    refuse(file, "is not a shared library. A plugin is one (docs/plugins.md).");
  }
  if (is_cut_off(file)) {
    refuse(file, "is cut off: parts that its header lists are missing. Build or copy it again.");
  }
}

std::shared_ptr<dll::shared_library> load(const fs::path& file) {
  try {
    return std::make_shared<dll::shared_library>(file, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
  } catch (const std::exception& error) {
    refuse(file, std::string("could not be loaded: ") + error.what() + ".");
  }
}

const PluginDescription& description_of(const dll::shared_library& library, const fs::path& file) {
  if (!library.has(kPluginSymbol)) {
    refuse(file, std::string("is not a plugin of vramlab: it has no function ") + kPluginSymbol +
                     ". The macro VRAMLAB_PLUGIN defines it.");
  }
  const PluginDescription* description = nullptr;
  try {
    description = library.get<const PluginDescription*()>(kPluginSymbol)();
  } catch (...) {
    refuse(file, std::string("its function ") + kPluginSymbol + " failed.");
  }
  if (description == nullptr) {
    refuse(file, std::string("its function ") + kPluginSymbol + " describes nothing.");
  }
  return *description;
}

std::string or_nothing(const char* text) { return text != nullptr ? text : "nothing"; }

void require_fitting(const PluginDescription& plugin, const fs::path& file) {
  const std::string again = " Build it again with this program's headers.";
  if (plugin.abi != kPluginAbi) {
    refuse(file, "was built for plugin ABI " + std::to_string(plugin.abi) + "; this program has " +
                     std::to_string(kPluginAbi) + "." + again);
  }
  if (or_nothing(plugin.toolchain) != kPluginToolchain) {
    refuse(file, "was built with " + or_nothing(plugin.toolchain) + "; this program with " +
                     kPluginToolchain + ". Build it again with the same compiler.");
  }
  if (plugin.layout != kPluginLayout) {
    refuse(file, "was built with headers of another version." + again);
  }
  if (plugin.name == nullptr || plugin.version == nullptr || plugin.add == nullptr) {
    refuse(file,
           "its description lacks a name, a version or the function that adds "
           "policies. The macro VRAMLAB_PLUGIN gives all three.");
  }
}

PolicySet policies_of(const PluginDescription& plugin, const fs::path& file) {
  PolicySet added;
  try {
    plugin.add(added);
  } catch (const std::exception& error) {
    refuse(file, std::string("could not add its policies: ") + error.what() + ".");
  } catch (...) {
    refuse(file, "could not add its policies.");
  }
  return added;
}

/// What is wrong with one of the plugin's kinds, beyond its name; empty if nothing is.
template <class Kind>
std::string fault_of(const Kind& kind) {
  if (!kind.make) return "has no function that makes it";
  for (const Field& option : kind.options) {
    const std::string named = "has an option \"" + option.key + "\" ";
    if (option.kind > FieldKind::choice) return named + "of a kind that options cannot have";
    if (option.required) return named + "that is required; leaving an option out gives its default";
  }
  try {
    (void)kind.find_profile("");
    for (const PolicyProfile& profile : kind.profiles)
      checked_options(kind.name, kind.options, profile.options);
  } catch (const InputError& error) {
    return "has a wrong profile: " + error.problems().front().what;
  }
  return {};
}

void require_sound(const PolicySet& added, const PolicySet& known, const fs::path& file) {
  std::vector<std::string> names = taken_names(known);
  if (added.names().empty()) refuse(file, "adds no policy.");
  added.for_each([&](const auto& kind) {
    if (kind.name.empty()) refuse(file, "adds a policy without a name.");
    if (std::find(names.begin(), names.end(), kind.name) != names.end()) {
      refuse(file, "adds a policy \"" + kind.name + "\", and there is one of that name. Rename it.");
    }
    names.push_back(kind.name);
    const std::string fault = fault_of(kind);
    if (!fault.empty()) refuse(file, "its policy \"" + kind.name + "\" " + fault + ".");
  });
}

}  // namespace

std::shared_ptr<const PolicySet> with_plugin(const std::shared_ptr<const PolicySet>& known,
                                             const fs::path& file) {
  if (&vramlab_is_static != nullptr) {
    refuse(file,
           "this program is linked statically and cannot load plugins. The .deb package can, and a build.");
  }
  require_shared_library(file);
  const std::string place = fs::canonical(file).string();
  for (const PolicyPlugin& plugin : known->plugins) {
    if (plugin.file == place) return known;
  }
  const auto library = load(place);  // outlives all that comes from it
  const PluginDescription& plugin = description_of(*library, file);
  require_fitting(plugin, file);
  const PolicySet added = policies_of(plugin, file);
  require_sound(added, *known, file);
  auto all = std::make_shared<PolicySet>(*known);
  add_guarded(*all, added, library);
  all->plugins.push_back({place, plugin.name, plugin.version, added.names()});
  return all;
}

std::vector<fs::path> plugins_in(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  if (error) refuse(folder, "is not a folder of plugins: " + error.message() + ".");
  std::sort(files.begin(), files.end());
  return files;
}

std::shared_ptr<const PolicySet> with_plugin_path(std::shared_ptr<const PolicySet> known,
                                                  const std::string& folders) {
  std::istringstream names{folders};
  for (std::string folder; std::getline(names, folder, ':');) {
    if (folder.empty()) continue;
    for (const fs::path& file : plugins_in(folder)) known = with_plugin(known, file);
  }
  return known;
}

}  // namespace vramlab
