"""README as a package index shows it, where a relative link leads nowhere."""

import re

LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\]`])*)\]\((?!https?:|#)([^)]+)\)")
PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.DOTALL)


def of(readme: str, repository: str | None) -> str:
    """With links into the repository; where that has no address, with the text of the links alone."""

    def link(match: re.Match) -> str:
        image, text, path = match.groups()
        if repository is None:
            return "" if image else text
        return f"{image}[{text}]({repository.rstrip('/')}/{'raw' if image else 'blob'}/main/{path})"

    return LINK.sub(link, PICTURE.sub("", readme))
