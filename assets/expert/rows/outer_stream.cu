for (${type} ${at} = ${first}; ${at} < ${end}; ${at} += kTeam * kItems) {
    ${body}
}
