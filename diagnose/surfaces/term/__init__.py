"""term"""
