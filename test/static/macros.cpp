// SPDX-License-Identifier: BSL-1.0
// Macros that headers of others define do no harm, std's headers being read before.
#include <boost/hana/equal.hpp>
#include <boost/hana/prepend.hpp>
#include <boost/hana/size.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <clocale>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <unordered_map>
#include <variant>
#include <vector>
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#if __has_include(<xsimd/xsimd.hpp>)
#include <xsimd/xsimd.hpp>
#endif

#include "../macros_of_others.hpp"

#include <varve/export.hpp>
#include <varve/interop/dlpack.hpp>
#include <varve/io/csv.hpp>
#include <varve/io/npz.hpp>
#include <varve/io/safetensors.hpp>
#include <varve/linalg.hpp>
#include <varve/mode/all.hpp>
#include <varve/nn.hpp>
#include <varve/optim.hpp>
#include <varve/optim/schur.hpp>
#include <varve/varve.hpp>

static_assert(varve::grad([](auto x) { return x * x; })(3.0) == 6);
static_assert(VARVE_VERSION == VARVE_VERSION_MAJOR * 10000 + VARVE_VERSION_MINOR * 100 + VARVE_VERSION_PATCH);
