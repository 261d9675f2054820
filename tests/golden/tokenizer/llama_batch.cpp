// Tokenizes many texts with llama.cpp, as `llama-tokenize` does one: a golden-data tool, no part of the build.
//
//   clang++-19 -O1 -I llama.cpp/include -I llama.cpp/ggml/include llama_batch.cpp <llama.cpp's libraries> -o
//   llama_batch llama_batch MODEL.gguf add_special parse_special < texts
//
// Input: for each text a little-endian uint32 length and its bytes. Output: one line of ids each.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "llama.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model* model = llama_model_load_from_file(argv[1], params);
  if (model == nullptr) return 1;
  const llama_vocab* vocab = llama_model_get_vocab(model);
  const bool add_special = std::atoi(argv[2]) != 0, parse_special = std::atoi(argv[3]) != 0;
  uint32_t size = 0;
  while (std::fread(&size, sizeof size, 1, stdin) == 1) {
    std::string text(size, '\0');
    if (size > 0 && std::fread(text.data(), 1, size, stdin) != size) return 1;
    std::vector<llama_token> ids(size + 8);
    const int count = llama_tokenize(vocab, text.data(), static_cast<int32_t>(size), ids.data(),
                                     static_cast<int32_t>(ids.size()), add_special, parse_special);
    if (count < 0) return 1;
    for (int i = 0; i < count; ++i) std::printf(i ? " %d" : "%d", ids[static_cast<size_t>(i)]);
    std::printf("\n");
  }
  llama_model_free(model);
}
