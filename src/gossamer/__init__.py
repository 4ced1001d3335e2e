"""Gossamer: a polite, crash-safe, fast web crawler."""

import sys
from typing import TYPE_CHECKING

from gossamer import moved
from gossamer.model.product import __version__ as __version__

if TYPE_CHECKING:
    from gossamer.api import Crawler as Crawler
    from gossamer.api.archives import import_archives as import_archives
    from gossamer.api.iterating import Tables as Tables
    from gossamer.api.iterating import crawl as crawl
    from gossamer.stages.process.items import Follow as Follow
    from gossamer.stages.process.items import extractor as extractor
    from gossamer.stages.process.own import processing_module as processing_module

__all__ = ["Crawler", "Follow", "Tables", "__version__", "crawl", "extractor", "import_archives", "processing_module"]

moved.install()


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # A type checker would take any name.

    def __getattr__(name: str) -> object:
        # Lazily, so that importing one package loads that package only.
        if name in ("Crawler", "Tables", "crawl", "import_archives"):
            from gossamer.world.allocators import prefer_system_allocator  # noqa: PLC0415

            prefer_system_allocator()  # Before Arrow is loaded.
            from gossamer.api import iterating  # noqa: PLC0415

            if name == "import_archives":
                from gossamer.api import archives  # noqa: PLC0415

                return archives.import_archives
            return getattr(iterating, name)
        if name in ("Follow", "extractor", "processing_module"):
            from gossamer.stages.process import items, own  # noqa: PLC0415

            return getattr(own if name == "processing_module" else items, name)
        raise MissingNameError(name)


class MissingNameError(AttributeError):
    """Error about a name that this package lacks. Its text names what is meant; it is made when it is shown, because
    each first import of a module asks for its name here.
    """

    def __str__(self) -> str:
        from gossamer.config.synonyms import missing_attribute  # noqa: PLC0415

        return str(missing_attribute(sys.modules[__name__], self.args[0], "gossamer", f"module {__name__!r}"))
