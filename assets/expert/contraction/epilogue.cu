//% each values
const ${type} value_${tensor} = ${value};
//% if place
${pointer}[${place}] = ${element};
//% end
//% end
