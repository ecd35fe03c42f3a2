const float ${f}_top = cp_maximum(${f}, o.${f});
const float ${f}_base = ${f}_top == -INFINITY ? 0.0f : ${f}_top;
${f}_sum = ${f}_sum * ${exp}(${f} - ${f}_base) + o.${f}_sum * ${exp}(o.${f} - ${f}_base);
${f} = ${f}_top;
