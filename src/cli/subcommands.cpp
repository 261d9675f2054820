#include <array>

#include "cli/context.h"
#include "cli/terminal.h"

namespace vedette::cli {

std::span<const Subcommand> subcommands() {
  static constexpr std::array<Subcommand, 16> kSubcommands = {{
      {"run", run_talk},
      {"generate", run_talk},
      {"inspect", run_inspect},
      {"list", run_list},
      {"arch", run_arch},
      {"eval", run_eval},
      {"benchmark", run_benchmark},
      {"convert", run_convert},
      {"serve", run_serve},
      {"claude", run_claude},
      {"download", run_download},
      {"rm", run_rm},
      {"models", run_models},
      {"doctor", run_doctor},
      {"version", run_version},
      {"help", run_help},
  }};
  return kSubcommands;
}

Status start(const Context& context) {
  VEDETTE_RETURN_IF_ERROR(context.options.check_all_read());
  for (const std::string& notice : context.options.notices()) print_notice(notice);
  return ok_status();
}

}  // namespace vedette::cli
