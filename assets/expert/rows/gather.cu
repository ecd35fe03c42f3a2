${type} ${part} = ${type}::none();
for (int ${at} = ${lane}; ${live}${at} < ${split}; ${at} += kTeam)
    ${part}.merge(static_cast<const ${type} *>(${memory})[${row} + ${at}]);
