// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/list.hpp>
#include <varve/value/tensor.hpp>

#include <initializer_list>

namespace varve {

/// A scope in which writes into the given tensors do not change their versions: the counters are restored on every
/// exit.
class preserve_version_counter {
public:
  preserve_version_counter(std::initializer_list<tensor> tensors) {
    for (auto const& t : tensors) saved_.push_back({t, t.version()});
  }
  explicit preserve_version_counter(tensor const& t) : preserve_version_counter({t}) {}
  preserve_version_counter(preserve_version_counter const&) = delete;
  preserve_version_counter& operator=(preserve_version_counter const&) = delete;
  ~preserve_version_counter() {
    for (auto const& s : saved_) s.value.set_version(s.version);
  }

private:
  struct saved {
    tensor value;
    std::uint32_t version;
  };
  list<saved> saved_;
};
/// Sets a version counter. Throws `value_error` if `version` is negative, and `autograd_error` for tensors made in
/// inference mode.
inline void unsafe_set_version_counter(tensor const& t, index_t version) {
  if (version < 0)
    refuse::with<value_error>(
        ("varve: unsafe_set_version_counter: a version cannot be negative, as " + std::to_string(version) + " is")
            .c_str());
  (void)t.version();
  t.set_version(static_cast<std::uint32_t>(version));
}
/// Raises the version counter by one, for a change that no operator made. Tensors made in inference mode have no
/// counter, so nothing visible changes.
inline void increment_version(tensor const& t) { t.bump_version(); }

} // namespace varve
