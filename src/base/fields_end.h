/* Ends a list of fields: the words of base/fields_as.h mean nothing any more. Last line of a .def.
 */
#undef BEGIN
#undef BEGIN_ARRAY
#undef BEGIN_OPEN
#undef END
#undef FIELD
#undef MAYBE
#undef MAYBE_TEXT
#undef COUNT
#undef FIXED
#undef LIST
#undef SOME
#undef OPEN
#undef ONE
#undef MAYBE_ONE
#undef MANY
#undef SOME_OF
#undef OPEN_OF
#undef MAP
#undef OWN
#undef RANGE
#undef RANGE_OR_0
#undef FIXED_RANGE
#undef CHARS
#undef NAMED
