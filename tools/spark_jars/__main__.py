"""`python -m tools.spark_jars`: download the jars and print their folder."""

from tools.spark_jars import fetch

if __name__ == "__main__":
    print(fetch()[0].parent)
