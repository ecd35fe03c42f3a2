//% each boxes
gemm_copy_box(to + ${at}, &map_${name}, ${inner}, ${row}, ${slab}, barrier);
//% end
