// filled by base
