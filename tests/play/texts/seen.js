() => {
    const seen = (node) => {
        if (node.nodeType === 3) return node.data;
        if (node.nodeType !== 1 || node.matches("#say, [role=status], [role=alert], script"))
            return "";
        const names = node.getAttributeNames().filter((one) => !/style|class/.test(one)).sort();
        const attributes = [...names.map((name) => `${name}="${node.getAttribute(name)}"`),
            ...[...node.classList].sort()].join(" ");
        const inside = [...node.childNodes].map(seen).join("");
        return `\n<${node.tagName.toLowerCase()} ${attributes}>${inside}`;
    };
    return location.hash + document.title + seen(document.body);
}
