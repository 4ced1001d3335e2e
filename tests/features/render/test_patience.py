"""How long a page is waited for while its requests do not end."""

from __future__ import annotations

from gossamer.features.render.patience import AGAIN_S, PagePatience

LIMIT_S = 4.0


def patience(*, delayed: bool = False) -> PagePatience:
    one = PagePatience(LIMIT_S, lambda: delayed)
    one.is_parsed = True
    return one


def test_a_request_without_a_reply_is_waited_for_up_to_the_limit() -> None:
    one = patience()
    one.begin(1)
    one.pass_time(LIMIT_S - 0.1)
    assert one.lasts
    one.pass_time(0.2)
    assert not one.lasts


def test_requests_that_follow_each_other_are_waited_for_up_to_the_limit() -> None:
    one = patience()
    for number in range(4):
        one.begin(number)
        assert one.lasts
        one.pass_time(1.0)
        one.end(number)
    one.begin(9)
    assert not one.lasts


def test_requests_of_the_start_are_waited_for_while_replies_come() -> None:
    one = patience()
    for number in range(30):
        one.begin(number)
    for number in range(30):
        one.pass_time(1.0)
        assert one.lasts
        one.end(number)


def test_the_delay_of_a_host_does_not_count() -> None:
    one = patience(delayed=True)
    one.begin(9)
    one.pass_time(10 * LIMIT_S)
    assert one.lasts


def test_nothing_counts_before_the_document_is_parsed() -> None:
    one = PagePatience(LIMIT_S, bool)
    one.begin(9)
    one.pass_time(10 * LIMIT_S)
    assert one.lasts


def test_a_page_that_was_given_up_gets_little_more_in_all() -> None:
    one = patience()
    one.begin(9)
    one.pass_time(LIMIT_S)
    assert not one.lasts
    one.shorten()
    assert not one.lasts
    for number in range(2, 4):
        one.renew()
        one.begin(number)
        assert one.lasts
        one.pass_time(AGAIN_S / 2)
        one.end(number)
    one.renew()
    one.begin(9)
    assert one.is_over
    assert not one.lasts


def test_each_step_of_a_page_whose_requests_end_gets_the_whole_limit() -> None:
    one = patience()
    for number in range(5):
        one.renew()
        one.begin(number)
        one.pass_time(LIMIT_S - 1.0)
        assert one.lasts
        one.end(number)
