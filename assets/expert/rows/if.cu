if (${inside}) {
    ${body}
}
