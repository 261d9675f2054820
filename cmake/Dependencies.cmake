# Every outside dependency, found or pinned here, each with the reason it is here.
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)               # formatting of messages (Debian libfmt-dev 9.1)
find_package(spdlog 1.10 REQUIRED)         # log sinks and levels, wrapped by base/log (Debian libspdlog-dev)
find_package(nlohmann_json 3.11 REQUIRED)  # JSON tokenizer, wrapped by base/json (Debian nlohmann-json3-dev)
find_package(CLI11 2.1 REQUIRED)           # command line, wrapped by cli/parser (Debian libcli11-dev)
find_package(GTest 1.12 REQUIRED)          # unit tests (Debian libgtest-dev)
# Line editing in the chat (Debian libedit-dev; BSD licence, where readline's is GPL).
find_path(VEDETTE_LIBEDIT_INCLUDE histedit.h REQUIRED)
find_library(VEDETTE_LIBEDIT edit REQUIRED)
add_library(vedette_libedit INTERFACE)
target_link_libraries(vedette_libedit INTERFACE ${VEDETTE_LIBEDIT})
target_include_directories(vedette_libedit INTERFACE ${VEDETTE_LIBEDIT_INCLUDE})
