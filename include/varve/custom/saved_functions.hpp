// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/spin_lock.hpp>
#include <varve/custom/boxed_custom_function.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace varve::detail {

/// A custom function with the types of its arguments, registered under the name used in files: see `saved_function`.
struct saved_function_entry {
  std::string name;
  void const* type; // of the type-erased function
  std::size_t results;
  /// Returns the arguments that are not tensors, as words without spaces.
  std::vector<std::string> (*words)(boxed_custom_function const& f);
  /// Creates the function from such words and returns the number of tensors in `tensors`. Returns null if the words are
  /// invalid.
  custom_function_ptr (*make)(std::vector<std::string> const& words, std::size_t& tensors);
  saved_function_entry const* next = nullptr;
};
/// The saved functions of this process.
class saved_functions {
public:
  static void add(saved_function_entry& e) {
    bool taken = false;
    all().lock([&] {
      for (auto const* o = all().first; o; o = o->next) taken = taken || o->name == e.name || o->type == e.type;
      if (!taken) e.next = std::exchange(all().first, &e);
    });
    if (taken)
      refuse::with<value_error>(("varve: saved_function: the name " + e.name +
                                 ", or the function with these arguments, is registered already; end that first")
                                    .c_str());
  }
  static void remove(saved_function_entry& e) {
    all().lock([&] {
      for (auto const** o = &all().first; *o; o = const_cast<saved_function_entry const**>(&(*o)->next))
        if (*o == &e) {
          *o = e.next;
          break;
        }
    });
  }
  /// Returns the first entry that satisfies `is`, or null.
  template <class Is>
  static saved_function_entry const* find(Is const& is) {
    saved_function_entry const* r = nullptr;
    all().lock([&] {
      for (auto const* o = all().first; o && !r; o = o->next)
        if (is(*o)) r = o;
    });
    return r;
  }

private:
  struct list_of_entries {
    spin_lock lock;
    saved_function_entry const* first = nullptr;
  };
  static list_of_entries& all() {
    static auto* const l = new list_of_entries; // never destroyed, so that it outlives every entry
    return *l;
  }
};

} // namespace varve::detail
