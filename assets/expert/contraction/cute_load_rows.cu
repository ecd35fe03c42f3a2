// ${tensor}, ${rows} x ${row} of it, 16 bytes a copy.
${base}
auto ${load} = [&](int ${stage}, int ${k0}) {
    ${target}
    gemm_copy_rows<${threads}, ${tiles}::Rows${side}, ${tiles}::Swizzle${side}, ${type}, ${index}>(
        ${to}, ${pointer} + ${source}, ${pitch}, ${rows_left}, ${cols_left});
};
