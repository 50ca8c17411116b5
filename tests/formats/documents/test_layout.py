from rechain.formats.documents.layout import drop_repeated


def test_two_pages_are_left_as_they_are() -> None:
    pages = [["Head", "text"], ["Head", "more"]]
    assert drop_repeated(pages) == pages


def test_left_and_right_pages_may_have_headers_of_their_own() -> None:
    pages = [["Left head" if n % 2 else "Right head", f"Body {word}", str(n)] for n, word in enumerate("abcdef", 3)]
    assert drop_repeated(pages) == [[f"Body {word}"] for word in "abcdef"]


def test_numbers_that_do_not_grow_by_page_stay() -> None:
    pages = [[f"Item {n}"] for n in (17, 3, 22, 9)]
    assert drop_repeated(pages) == pages


def test_a_stamp_amid_the_text_is_dropped() -> None:
    pages = [[*"abcd", "CONFIDENTIAL DRAFT", *"efgh"] for _ in range(5)]
    varied = [[f"{line}{n}x{n * n}" if len(line) == 1 else line for line in page] for n, page in enumerate(pages)]
    assert all("CONFIDENTIAL DRAFT" not in page for page in drop_repeated(varied))


def test_a_line_at_the_edge_of_fewer_than_half_of_the_pages_stays() -> None:
    pages = [["Notes" if n < 2 else f"Part {word}", f"Body {word}"] for n, word in enumerate("abcde")]
    assert drop_repeated(pages) == pages
    assert drop_repeated(pages[:4]) == [["Body a"], ["Body b"], *pages[2:4]]
