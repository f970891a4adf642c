// SPDX-License-Identifier: BSL-1.0
#include "samples.hpp"

#include <fstream>

/// Writes each sample as a header into a folder.
int main(int, char** arguments) {
  for (emit::sample const& s : emit::samples())
    std::ofstream(std::string(arguments[1]) + "/" + s.name + ".hpp") << varve::emit_cpp(s.g, s.name);
}
