// What a subcommand gets, and the registry of subcommands.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "base/result.h"

namespace vedette::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  // as shells report a program ended by SIGINT

struct Context {
  std::string_view subcommand;
  OptionValues options;               // validated, environment applied
  std::vector<std::string> operands;  // words that belong to no option and that the table gives to none
};

// Reads every option it may use and calls start(context) before any slow work. Returns the exit code; an error is
// printed as one line and is exit code 1.
using SubcommandFunction = Result<int> (*)(Context& context);

struct Subcommand {
  std::string_view name;  // as in base/options' table
  SubcommandFunction run;
};

std::span<const Subcommand> subcommands();

// To be called once all options are read: inert options are reported, an option that nothing read is an error.
Status start(const Context& context);

Result<int> run_talk(Context& context);  // run, generate
Result<int> run_inspect(Context& context);
Result<int> run_list(Context& context);
Result<int> run_arch(Context& context);
Result<int> run_eval(Context& context);
Result<int> run_benchmark(Context& context);
Result<int> run_convert(Context& context);
Result<int> run_serve(Context& context);
Result<int> run_claude(Context& context);
Result<int> run_download(Context& context);
Result<int> run_rm(Context& context);
Result<int> run_models(Context& context);
Result<int> run_doctor(Context& context);
Result<int> run_version(Context& context);
Result<int> run_help(Context& context);

// Help of one subcommand, or of the program if the name is empty.
std::string help_text(std::string_view subcommand);

}  // namespace vedette::cli
