# What `cmake --install` puts where, and the config package that finds it again.
#
# A component is what find_package(vramlab COMPONENTS …) may ask for. Each has its libraries in an export set of its
# own, so that a program that links two of them needs the dependencies of these two alone.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(VRAMLAB_COMPONENT_core core engine)
set(VRAMLAB_COMPONENT_plugin contract)
set(VRAMLAB_COMPONENT_policies models policies)
set(VRAMLAB_COMPONENT_memory memory)
set(VRAMLAB_COMPONENT_lab plan runs files recordings plugins report comparison lab)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/vramlab)

foreach(component core plugin policies memory lab)
  foreach(library ${VRAMLAB_COMPONENT_${component}})
    set_target_properties(vramlab_${library} PROPERTIES EXPORT_NAME ${library})
    install(TARGETS vramlab_${library} EXPORT vramlab-${component}
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endforeach()
  install(EXPORT vramlab-${component} NAMESPACE vramlab:: DESTINATION ${config_folder} COMPONENT development)
endforeach()

# Headers keep their folders: a policy is compiled alike in the source tree and outside.
foreach(folder core plan sim models policies plugins recordings report lab)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vramlab COMPONENT development
          FILES_MATCHING PATTERN "*.hpp" PATTERN "template" EXCLUDE PATTERN "html" EXCLUDE)
endforeach()

configure_package_config_file(cmake/vramlab-config.cmake.in ${PROJECT_BINARY_DIR}/vramlab-config.cmake
                              INSTALL_DESTINATION ${config_folder} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/vramlab-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/vramlab-config.cmake ${PROJECT_BINARY_DIR}/vramlab-config-version.cmake
              cmake/VramlabPlugin.cmake
        DESTINATION ${config_folder} COMPONENT development)

# The program, and beside it the data folder where lab/scenario/file.cpp looks.
set(data_folder ${CMAKE_INSTALL_DATADIR}/vramlab)
install(TARGETS vramlab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY scenarios DESTINATION ${data_folder} COMPONENT program)
install(DIRECTORY models DESTINATION ${data_folder} COMPONENT program FILES_MATCHING PATTERN "*.json" PATTERN layers EXCLUDE)
install(FILES tests/data/recorded/resnet.pickle.gz tests/data/recorded/resnet.truth.json.gz
        DESTINATION ${data_folder}/tests/data/recorded COMPONENT program)
install(FILES policies/tuners/skeleton.cpp DESTINATION ${data_folder}/policies/tuners COMPONENT program)
install(DIRECTORY policies/template DESTINATION ${data_folder}/policies COMPONENT program)

# Sessions of policies, and the program's answers, for other languages.
install(TARGETS vramlab_policy vramlab_answers LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program)
install(FILES capi/vramlab_policy.h capi/vramlab.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vramlab/capi COMPONENT development)
install(DIRECTORY python DESTINATION ${data_folder} COMPONENT program FILES_MATCHING PATTERN "*.py")

# The man page and the completions come from the program's own option tables.
set(pages ${PROJECT_BINARY_DIR}/pages)
foreach(page "man;vramlab.1;man/man1" "bash;vramlab;bash-completion/completions" "zsh;_vramlab;zsh/vendor-completions"
             "fish;vramlab.fish;fish/vendor_completions.d")
  list(GET page 0 kind)
  list(GET page 1 file)
  list(GET page 2 place)
  add_custom_command(OUTPUT ${pages}/${kind}/${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}/${kind}
    COMMAND vramlab completion ${kind} > ${pages}/${kind}/${file}
    DEPENDS vramlab VERBATIM)
  list(APPEND files ${pages}/${kind}/${file})
  install(FILES ${pages}/${kind}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${place} COMPONENT program)
endforeach()
add_custom_target(vramlab_pages ALL DEPENDS ${files})

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # a package is made of what was built; it does not build the tests
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME vramlab)
set(CPACK_PACKAGE_CONTACT "the vramlab developers <vramlab@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox, fonts-dejavu-core, coinor-cbc")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "g++, cmake, libfmt-dev, nlohmann-json3-dev, libyaml-cpp-dev, libeigen3-dev, libboost-dev, libboost-iostreams-dev")
include(CPack)
